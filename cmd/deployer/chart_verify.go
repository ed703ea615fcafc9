package main

import (
	"context"

	"deployer/chart/repository"
)

func verifyCommand(e *env) *command {
	var keyring string
	return &command{
		name: "verify", usage: "verify the signature of a chart archive", args: "ARCHIVE",
		steps:    `Verifies the archive with the .prov file beside it, and that file with the keys.`,
		examples: "deployer verify web-1.2.0.tgz --keyring pubring.gpg",
		codes:    "0 signed by one of the keys; 1 not signed by any, or failed",
		flags:    []*flag{keyringFlag(&keyring)},
		action: withArguments(1, 1, "a chart archive", func(_ context.Context, args []string) error {
			signature, err := repository.Verify(args[0], keyring)
			if err != nil {
				return err
			}
			return printTo(e.streams.Out, signature)
		}),
	}
}
