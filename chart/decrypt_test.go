package chart

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
)

// encrypted is text for the holder of an identity.
func encrypted(t *testing.T, text string, to age.Recipient, armored bool) string {
	t.Helper()
	var out bytes.Buffer
	w := io.WriteCloser(nopCloser{&out})
	if armored {
		w = armor.NewWriter(&out)
	}
	plain, err := age.Encrypt(w, to)
	if err == nil {
		_, err = io.WriteString(plain, text)
	}
	if err := errors.Join(err, plain.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestValuesEncryptedByAge(t *testing.T) {
	id, other, dir := identity(t), identity(t), t.TempDir()
	binary, armored, bad := filepath.Join(dir, "b.yaml"), filepath.Join(dir, "a.yaml"), filepath.Join(dir, "bad.yaml")
	keys, damaged := filepath.Join(dir, "keys.txt"), filepath.Join(dir, "damaged.yaml")
	write(t, binary, encrypted(t, "password: hunter2\n", id.Recipient(), false))
	write(t, armored, "\n"+encrypted(t, "user: root\n", id.Recipient(), true))
	write(t, bad, encrypted(t, "a: b\nc: *hunter2\n", id.Recipient(), true))
	write(t, damaged, encrypted(t, "a: b\n", id.Recipient(), false)+"x")
	write(t, keys, "# created\n"+id.String()+"\n")
	for name, test := range map[string]struct {
		files string
		env   map[string]string
		want  string // of the error; empty for success
	}{
		"key file":           {files: binary + "," + armored, env: map[string]string{"DEPLOYER_AGE_IDENTITY": keys}},
		"key file of sops":   {files: binary + "," + armored, env: map[string]string{"SOPS_AGE_KEY_FILE": keys}},
		"key":                {files: binary + "," + armored, env: map[string]string{"SOPS_AGE_KEY": other.String() + "\n" + id.String()}},
		"no key":             {files: armored, want: "--values " + armored + ": it is encrypted by age: no private key was found"},
		"another key":        {files: armored, env: map[string]string{"SOPS_AGE_KEY": other.String()}, want: "none of the private keys can decrypt it"},
		"no key file":        {files: armored, env: map[string]string{"DEPLOYER_AGE_IDENTITY": "none"}, want: "DEPLOYER_AGE_IDENTITY none: no such file"},
		"a mistyped key":     {files: armored, env: map[string]string{"SOPS_AGE_KEY": "AGE-SECRET-KEY-hunter2"}, want: "SOPS_AGE_KEY: it has no age private key"},
		"damaged":            {files: damaged, env: map[string]string{"SOPS_AGE_KEY": id.String()}, want: "it is encrypted by age"},
		"not YAML, and shut": {files: bad, env: map[string]string{"SOPS_AGE_KEY": id.String()}, want: "not YAML with keys at its top level"},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"XDG_CONFIG_HOME": dir}
			for k, v := range test.env {
				env[k] = v
			}
			got, err := Values(t.Context(), []ValuesSource{{ValuesFile, test.files}}, ValuesOptions{Getenv: func(k string) string { return env[k] }})
			if test.want == "" {
				if err != nil || got["password"] != "hunter2" || got["user"] != "root" {
					t.Errorf("Values = %v, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("Values: %v\nwant an error with %q, and nothing of what is encrypted", err, test.want)
			}
		})
	}
}

// fakeSops stands for the user's sops.
const fakeSops = `#!/bin/sh
[ "$*" = "--decrypt --input-type yaml --output-type yaml /dev/stdin" ] || { echo "bad arguments: $*" >&2; exit 2; }
grep -q 'ENC\[AES256_GCM,data:broken' && { echo "MAC mismatch" >&2; exit 51; }
printf 'password: hunter2\nport: 5432\n'
`

const sopsFile = `password: ENC[AES256_GCM,data:DATA,iv:aa,tag:bb,type:str]
port: ENC[AES256_GCM,data:abcd,iv:aa,tag:bb,type:int]
sops:
    age: []
    lastmodified: "2026-11-01T00:00:00Z"
    mac: ENC[AES256_GCM,data:mmm,iv:aa,tag:bb,type:str]
    version: 3.9.0
`

func TestValuesEncryptedBySops(t *testing.T) {
	dir := t.TempDir()
	secret, broken, like := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "b.yaml"), filepath.Join(dir, "l.yaml")
	write(t, secret, sopsFile)
	write(t, broken, strings.Replace(sopsFile, "DATA", "broken", 1))
	write(t, like, "sops: {enabled: true, mac: none}\nnote: 'ENC[x]'\n")
	t.Setenv("PATH", "/nowhere")
	_, err := Values(t.Context(), []ValuesSource{{ValuesFile, secret}}, ValuesOptions{})
	var encrypted *DecryptError
	if !errors.As(err, &encrypted) || encrypted.By != "SOPS" || !strings.Contains(encrypted.Hint(), "install sops") {
		t.Errorf("without sops: %v, want a *DecryptError with a hint", err)
	}
	got, err := Values(t.Context(), []ValuesSource{{ValuesFile, like}}, ValuesOptions{})
	if err != nil || got["sops"] == nil {
		t.Errorf("a file with a key sops: %v, %v, want it as it is", got, err)
	}

	bin := filepath.Join(dir, "bin")
	write(t, filepath.Join(bin, "sops"), fakeSops)
	if err := os.Chmod(filepath.Join(bin, "sops"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	got, err = Values(t.Context(), []ValuesSource{{Set, "port=1"}, {ValuesFile, secret}}, ValuesOptions{})
	if err != nil || got["password"] != "hunter2" || got["port"] != int64(1) || got["sops"] != nil {
		t.Errorf("Values = %v, %v, want what sops says, and --set over it", got, err)
	}
	if _, err = Values(t.Context(), []ValuesSource{{ValuesFile, broken}}, ValuesOptions{}); err == nil || !strings.Contains(err.Error(), "MAC mismatch") {
		t.Errorf("Values of a file that sops refuses: %v, want what sops says", err)
	}
}
