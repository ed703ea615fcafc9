package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"deployer/chart/repository"
)

func verifyCommand(e *env) *cli.Command {
	var keyring string
	return &cli.Command{
		Name: "verify", Usage: "verify the signature of a chart archive", ArgsUsage: "ARCHIVE",
		Description: `Verifies the archive with the .prov file beside it, and that file with the keys.

Examples:
  deployer verify web-1.2.0.tgz --keyring pubring.gpg

Exit codes: 0 signed by one of the keys; 1 not signed by any, or failed`,
		Flags: []cli.Flag{keyringFlag(&keyring)},
		Action: action(1, 1, "a chart archive", func(_ context.Context, args []string) error {
			signature, err := repository.Verify(args[0], keyring)
			if err != nil {
				return err
			}
			return printTo(e.streams.Out, signature)
		}),
	}
}
