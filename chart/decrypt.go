package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"sigs.k8s.io/yaml"

	"deployer/internal/agekey"
	"deployer/internal/program"
)

// The heads of files that age has encrypted. https://age-encryption.org/v1
const (
	ageBinary = "age-encryption.org/v1\n"
	ageArmor  = armor.Header
)

// sopsWaitDelay is how long sops may take to end after its context has ended.
const sopsWaitDelay = 2 * time.Second

// A DecryptError says why an encrypted values file can't be read. It never contains the
// file's content.
type DecryptError struct {
	By   string // age or sops
	Err  error
	hint string
}

func (e *DecryptError) Error() string { return fmt.Sprintf("it is encrypted by %s: %v", e.By, e.Err) }

// Unwrap gives the reason.
func (e *DecryptError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *DecryptError) Hint() string { return e.hint }

// A decrypter makes the plain text of encrypted values files, in memory.
type decrypter struct {
	getenv func(string) string
}

// decrypt decrypts data that age or SOPS has encrypted and returns other data unchanged. If
// decrypted is true, neither the plain text nor errors about it may be shown.
func (d decrypter) decrypt(ctx context.Context, data []byte) (plain []byte, decrypted bool, err error) {
	switch {
	case bytes.HasPrefix(data, []byte(ageBinary)):
		plain, err = d.age(bytes.NewReader(data))
		return plain, true, err
	case bytes.HasPrefix(bytes.TrimSpace(data), []byte(ageArmor)):
		plain, err = d.age(armor.NewReader(bytes.NewReader(data)))
		return plain, true, err
	}
	if format := sopsFormat(data); format != "" {
		plain, err = d.sops(ctx, data, format)
		return plain, true, err
	}
	return data, false, nil
}

func (d decrypter) age(encrypted io.Reader) ([]byte, error) {
	const hint = "name the file with the private key in DEPLOYER_AGE_IDENTITY or SOPS_AGE_KEY_FILE, or put the key into SOPS_AGE_KEY"
	identities, err := d.identities()
	if err == nil && len(identities) == 0 {
		err = errors.New("no private key was found")
	}
	if err != nil {
		return nil, &DecryptError{By: "age", Err: err, hint: hint}
	}
	r, err := age.Decrypt(encrypted, identities...)
	if errors.As(err, new(*age.NoIdentityMatchError)) {
		return nil, &DecryptError{By: "age", Err: errors.New("none of the private keys can decrypt it"), hint: hint}
	}
	var plain []byte
	if err == nil {
		plain, err = readLimited(r)
	}
	if err != nil {
		return nil, &DecryptError{By: "age", Err: err, hint: "the file is damaged: encrypt it again"}
	}
	return plain, nil
}

// identities reads the private keys from the places that age and sops use.
// https://getsops.io/docs/#encrypting-using-age
func (d decrypter) identities() ([]age.Identity, error) {
	var out []age.Identity
	for _, variable := range []string{"DEPLOYER_AGE_IDENTITY", "SOPS_AGE_KEY_FILE"} {
		path := d.getenv(variable)
		if path == "" {
			continue
		}
		data, err := readFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", variable, path, err)
		}
		some, err := agekey.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", variable, path, err)
		}
		out = append(out, some...)
	}
	if text := d.getenv("SOPS_AGE_KEY"); text != "" {
		some, err := agekey.Parse([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("SOPS_AGE_KEY: %w", err)
		}
		out = append(out, some...)
	}
	return append(out, d.defaultIdentities()...), nil
}

// defaultIdentities reads the keys in the default file of sops. If it can't be read, there
// are none.
func (d decrypter) defaultIdentities() []age.Identity {
	dir := d.getenv("XDG_CONFIG_HOME")
	if dir == "" {
		var err error
		if dir, err = os.UserConfigDir(); err != nil {
			return nil
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "sops", "age", "keys.txt"))
	if err != nil {
		return nil
	}
	identities, _ := agekey.Parse(data)
	return identities
}

// sopsFormat returns the format of values that SOPS has encrypted; empty for other values.
// These may have a key named sops, too.
func sopsFormat(data []byte) string {
	if !bytes.Contains(data, []byte("sops")) || !bytes.Contains(data, []byte("ENC[")) {
		return ""
	}
	var file struct {
		Sops struct {
			MAC          string `json:"mac"`
			LastModified string `json:"lastmodified"`
		} `json:"sops"`
	}
	if yaml.Unmarshal(data, &file) != nil || !strings.HasPrefix(file.Sops.MAC, "ENC[") || file.Sops.LastModified == "" {
		return ""
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return "json"
	}
	return "yaml"
}

// sops decrypts with the user's own sops program, which has access to their key services.
// Data is passed through pipes.
func (d decrypter) sops(ctx context.Context, data []byte, format string) ([]byte, error) {
	sops, err := exec.LookPath("sops")
	if err != nil {
		return nil, &DecryptError{By: "SOPS", Err: errors.New("the program sops, which decrypts it, is not installed"),
			hint: "install sops (https://getsops.io), or decrypt the file first: sops --decrypt FILE | " + program.Name + " … -f -"}
	}
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, sops, "--decrypt", "--input-type", format, "--output-type", "yaml", "/dev/stdin")
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(data), &out, &stderr, sopsWaitDelay
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if text := strings.TrimSpace(stderr.String()); text != "" {
			err = fmt.Errorf("sops: %w:\n%s", err, text)
		}
		return nil, &DecryptError{By: "SOPS", Err: err, hint: "check that sops --decrypt prints the file"}
	}
	return out.Bytes(), nil
}

// decryptedFileError describes a YAML error in a decrypted file without its content.
func decryptedFileError(err error) error {
	if m := lineNumber().FindStringSubmatch(err.Error()); m[1] != "" {
		return fmt.Errorf("decrypted, it is not YAML with keys at its top level: line %s (hidden)", m[1])
	}
	return errors.New("decrypted, it is not YAML with keys at its top level (hidden)")
}
