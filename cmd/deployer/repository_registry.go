package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"deployer/chart/repository"
)

func registryCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "registry", Usage: "log in to and out of registries",
		Subcommands: []*cli.Command{registryLogin(e), registryLogout(e)},
	}
}

func registryLogin(e *env) *cli.Command {
	var o repository.PushOptions
	var stdin bool
	a := &o.Access
	return &cli.Command{
		Name: "login", Usage: "log in to a registry", ArgsUsage: "HOST",
		Description: `Checks the credentials and stores them where Helm also finds them.

Examples:
  echo $TOKEN | deployer registry login registry.example.com -u ci --password-stdin`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "username", Aliases: []string{"u"}, Usage: "user `NAME` for the registry", Destination: &a.Username},
			&cli.StringFlag{Name: "password", Aliases: []string{"p"}, Usage: "`PASSWORD` or identity token", Destination: &a.Password},
			&cli.BoolFlag{Name: "password-stdin", Usage: "read the password or token from standard input", Destination: &stdin},
			&cli.BoolFlag{Name: "insecure", Usage: "don't verify the registry's certificate", Destination: &a.InsecureSkipTLS},
			&cli.BoolFlag{Name: "plain-http", Usage: "use HTTP instead of HTTPS for the registry", Destination: &a.PlainHTTP},
		}, certificateFlags("", a)...),
		Action: action(1, 1, "the host of a registry", func(ctx context.Context, args []string) error {
			if err := e.readCredentials(ctx, &a.Username, &a.Password, stdin); err != nil {
				return err
			}
			o.Settings, o.Log = e.helmFiles(), e.streams.Err
			return repository.Login(ctx, args[0], o)
		}),
	}
}

// readCredentials asks for credentials that the command line doesn't give. Without a user
// name, the password is an identity token.
func (c *console) readCredentials(ctx context.Context, user, password *string, stdin bool) (err error) {
	switch {
	case stdin:
		*password, err = c.readPipedSecret(ctx)
		return err
	case *password != "":
		c.printWarning("Using --password via the CLI is insecure. Use --password-stdin.")
		return nil
	}
	if *user == "" {
		if *user, err = c.readLine(ctx, "Username: "); err != nil {
			return err
		}
	}
	question, missing := "Password: ", "password required"
	if *user == "" {
		question, missing = "Token: ", "token required"
	}
	if *password, err = c.readSecret(ctx, question); err == nil && *password == "" {
		return errors.New(missing)
	}
	return err
}

func registryLogout(e *env) *cli.Command {
	return &cli.Command{
		Name: "logout", Usage: "log out of a registry", ArgsUsage: "HOST",
		Description: `Examples:
  deployer registry logout registry.example.com`,
		Action: action(1, 1, "the host of a registry", func(_ context.Context, args []string) error {
			return repository.Logout(args[0], repository.PushOptions{Settings: e.helmFiles(), Log: e.streams.Err})
		}),
	}
}
