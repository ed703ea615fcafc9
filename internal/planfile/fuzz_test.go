package planfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"
)

// FuzzParse holds that any file, with a digest that fits or not, is read or refused, and
// that nothing is read whose digest doesn't fit.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		`{}`, `{"release":"web"}`, `null`, `[]`, `{"objects":[{"object":null}]}`, `{"content":"AAAA"}`, `{"content":"H4sIAAAAAAAA/6tWKkktLlGyUkgpzc1VqgUAH2KPSBEAAAA="}`, `{"policies":{"no_hooks":1}}`,
	} {
		f.Add([]byte(`{"format":"`+magic+`","version":1}`), []byte(line), true)
		f.Add([]byte("deployer"), []byte(line), false)
	}
	f.Fuzz(func(t *testing.T, head, line []byte, fits bool) {
		var h header
		if fits && json.Unmarshal(head, &h) == nil {
			sum := sha256.Sum256(line)
			h.Digest = "sha256:" + hex.EncodeToString(sum[:])
			head, _ = json.Marshal(h)
		}
		plan, err := parse("a.plan", append(append(append([]byte{}, head...), '\n'), append(line, '\n')...))
		if err != nil {
			return
		}
		sum := sha256.Sum256(plan.line)
		if plan.digest != "sha256:"+hex.EncodeToString(sum[:]) {
			t.Errorf("%s\n%s\nis read, though its digest is %s", head, line, plan.digest)
		}
	})
}

// FuzzContent holds that what a plan's content unpacks to is read or refused.
func FuzzContent(f *testing.F) {
	for _, c := range []payload{{}} {
		packed, err := c.pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed)
	}
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := unpack(data); err == nil {
			if _, err := c.pack(); err != nil {
				t.Errorf("what was read can't be written: %v", err)
			}
		}
	})
}
