package main

import (
	"bytes"
	"os"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/rogpeppe/go-internal/testscript"
)

// makeKeys is the command keys of a script: it makes a signing key, encrypted
// if there is a passphrase, and the keyrings secring.gpg and pubring.gpg.
func makeKeys(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: keys NAME [PASSPHRASE]")
	}
	config := &packet.Config{RSABits: 2048, Algorithm: packet.PubKeyAlgoRSA}
	entity, err := openpgp.NewEntity(args[0], "test", args[0]+"@example.com", config)
	ts.Check(err)
	var public, secret bytes.Buffer
	ts.Check(entity.Serialize(&public))
	if len(args) == 2 {
		ts.Check(entity.EncryptPrivateKeys([]byte(args[1]), config))
	}
	ts.Check(entity.SerializePrivateWithoutSigning(&secret, config))
	ts.Check(os.WriteFile(ts.MkAbs("pubring.gpg"), public.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("secring.gpg"), secret.Bytes(), 0o600))
}
