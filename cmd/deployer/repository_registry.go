package main

import (
	"context"
	"errors"

	"deployer/chart/repository"
	"deployer/internal/view/output"
)

func registryCommand(e *env) *command {
	return &command{
		name: "registry", usage: "log in to and out of registries",
		commands: []*command{registryLogin(e), registryLogout(e)},
	}
}

func registryLogin(e *env) *command {
	var o repository.PushOptions
	var stdin bool
	a := &o.Access
	return &command{
		name: "login", is: changes, usage: "log in to a registry", args: "HOST", takes: "the host of a registry",
		steps:    `Checks the credentials and stores them where Helm also finds them.`,
		examples: "echo $TOKEN | deployer registry login registry.example.com -u ci --password-stdin",
		flags: append([]*flag{
			{name: "username", also: "u", usage: "user `NAME` for the registry", is: rare | safe, value: text(&a.Username)},
			{name: "password", also: "p", usage: "`PASSWORD` or identity token", is: rare | safe, value: text(&a.Password)},
			{name: "password-stdin", usage: "read the password or token from standard input", is: usual | safe, value: toggle(&stdin)},
			{name: "insecure", usage: "don't verify the registry's certificate", is: usual | risky, value: toggle(&a.InsecureSkipTLS)},
			{name: "plain-http", usage: "use HTTP instead of HTTPS for the registry", is: rare | risky, value: toggle(&a.PlainHTTP)},
		}, certificateFlags(a)...),
		action: func(ctx context.Context, args []string) error {
			if err := e.readCredentials(ctx, &a.Username, &a.Password, stdin); err != nil {
				return err
			}
			o.Settings, o.Log = e.files, e.streams.Err
			return repository.Login(ctx, args[0], o)
		},
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

func registryLogout(e *env) *command {
	return &command{
		name: "logout", is: changes, usage: "log out of a registry", args: "HOST", takes: "the host of a registry",
		examples: "deployer registry logout registry.example.com",
		action: func(_ context.Context, args []string) error {
			return repository.Logout(args[0], repository.PushOptions{Settings: e.files, Log: e.streams.Err})
		},
	}
}

func pullCommand(e *env) *command {
	var o repository.PullOptions
	return &command{
		name: "pull", is: changes, also: "fetch", usage: "download charts", args: "CHART...", takes: "a chart", complete: "REFERENCE",
		steps: `CHART is a URL, REPO/NAME or oci://REGISTRY/NAME.`,
		examples: `deployer pull podinfo/podinfo --version ^6 --untar
deployer pull oci://registry.example.com/charts/web --version 1.2.0 -d ./archives`,
		flags: append([]*flag{
			{name: "destination", also: "d", usage: "`DIR` to download to", is: usual | safe, value: text(&o.Destination, ".")},
			{name: "untar", usage: "unpack the archive", is: usual | safe, value: toggle(&o.Untar)},
			{name: "untardir", usage: "`DIR` to unpack into, below --destination", is: usual | safe, value: text(&o.UntarDir, ".")},
			{name: "prov", usage: "also download the .prov file, without verifying it", is: usual | safe, value: toggle(&o.Provenance)},
		}, locateFlags(&o.LoadOptions)...),
		action: func(ctx context.Context, refs []string) error {
			o.Settings = e.files
			for _, ref := range refs {
				waiting := e.showTransfer("fetching", ref)
				o.Log = waiting.Through(e.streams.Err)
				signature, err := repository.Pull(ctx, ref, o)
				waiting.Stop()
				if err != nil {
					return err
				}
				if signature == "" {
					continue
				}
				if err := printTo(e.streams.Out, signature); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func pushCommand(e *env) *command {
	var o repository.PushOptions
	return &command{
		name: "push", is: changes, usage: "upload a chart archive to a registry", args: "ARCHIVE REMOTE", takes: "a chart archive and a registry",
		steps:    `If there is a .prov file beside the archive, it is uploaded too.`,
		examples: "deployer push web-1.2.0.tgz oci://registry.example.com/charts",
		flags:    accessFlags(&o.Access),
		action: func(ctx context.Context, args []string) error {
			waiting := e.showTransfer("pushing", args[0])
			defer waiting.Stop()
			o.Settings, o.Log = e.files, waiting.Through(e.streams.Err)
			return repository.Push(ctx, args[0], args[1], o)
		},
	}
}

// showTransfer shows on a terminal that something is downloaded or uploaded, until
// it is stopped. Passwords in URLs are not shown.
func (e *env) showTransfer(verb, ref string) *output.Spinner {
	e.transferred.Reset()
	return output.StartSpinner(e.streams, output.WithoutPasswords(verb+" "+ref), e.transferred.Bytes)
}
