package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"deployer/internal/program"
	"deployer/internal/view/output"
)

func testEnv(t *testing.T, program string) *env {
	t.Helper()
	return newEnv(output.NewStreams(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, programName(program)), program)
}

// String is a command line in one form: flags by their first names before arguments.
func (l commandLine) String() string {
	words := slices.Clone(l.words)
	for _, given := range l.flags {
		words = append(words, strings.TrimSuffix(given.String(), "=true"))
	}
	if len(l.arguments) > 0 {
		words = append(append(words, "--"), l.arguments...)
	}
	return strings.Join(words, " ")
}

func TestParse(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{"flags after arguments", "upgrade web ./chart --install", "upgrade --install -- web ./chart"},
		{"flags between arguments", "upgrade web --wait ./chart", "upgrade --wait -- web ./chart"},
		{"flags before the command", "-n prod --debug upgrade web ./chart", "upgrade --namespace=prod --debug -- web ./chart"},
		{"attached value", "upgrade -nprod web ./chart", "upgrade --namespace=prod -- web ./chart"},
		{"short flag with equals sign", "lint -f=x", "lint --values=x"},
		{"output attached", "repo list -ojson", "repo list --output=json"},
		{"output with equals sign", "repo list -o=json", "repo list --output=json"},
		{"output long", "repo list --output=json", "repo list --output=json"},
		{"output before the command", "-o json repo list", "repo list --output=json"},
		{"between command words", "repo -o json list", "repo list --output=json"},
		{"joined, as list is called", "list -Aq", "list --all-namespaces --short"},
		{"joined, with a format", "list -Aqojson", "list --all-namespaces --short --output=json"},
		{"before the command", "-A list -q", "list --all-namespaces --short"},
		{"joined bools", "search repo -rl x", "search repo --regexp --versions -- x"},
		{"joined, the last takes a value", "search repo -rlojson x", "search repo --regexp --versions --output=json -- x"},
		{"joined, value follows", "search repo -rlo json x", "search repo --regexp --versions --output=json -- x"},
		{"-l is a bool here", "-l search repo x", "search repo --versions -- x"},
		{"-l takes a value there", "-l a=b upgrade web c", "upgrade --labels=a=b -- web c"},
		{"global value that looks like a command", "-n repo lint", "lint --namespace=repo"},
		{"standard input", "upgrade -f - web ./chart", "upgrade --values=- -- web ./chart"},
		{"dash is an argument", "lint -", "lint -- -"},
		{"value with a dash", "upgrade --set a=-1 web c", "upgrade --set=a=-1 -- web c"},
		{"value that starts with a dash", "upgrade --description -x web c", "upgrade --description=-x -- web c"},
		{"value that is a flag", "upgrade --description --wait web c", "upgrade --description=--wait -- web c"},
		{"value with equals signs", "upgrade --set=a=b=c web c", "upgrade --set=a=b=c -- web c"},
		{"empty value", "upgrade --description= web c", "upgrade --description= -- web c"},
		{"false", "upgrade --wait=false web c", "upgrade --wait=false -- web c"},
		{"short false", "search repo -r=false", "search repo --regexp=false"},
		{"a bool takes no following word", "upgrade --install false web", "upgrade --install -- false web"},
		{"optional value", "upgrade --dry-run server web", "upgrade --dry-run -- server web"},
		{"optional value attached", "upgrade --dry-run=server web", "upgrade --dry-run=server -- web"},
		{"repeated", "upgrade --set a=1 web --set b=2 c --set a=3", "upgrade --set=a=1 --set=b=2 --set=a=3 -- web c"},
		{"two names of one flag", "upgrade -n a --namespace b web c", "upgrade --namespace=a --namespace=b -- web c"},
		{"alias of a flag", "upgrade --rollback-on-failure web c", "upgrade --atomic -- web c"},
		{"alias of a command", "dep up ./c", "dependency update -- ./c"},
		{"after two dashes all are arguments", "upgrade --install -- web --wait -f", "upgrade --install -- web --wait -f"},
		{"argument named as the command", "upgrade upgrade help", "upgrade -- upgrade help"},
		{"negative argument", "rollback web -- -1", "rollback -- web -1"},
		{"negative value", "upgrade --history-max -1 web c", "upgrade --history-max=-1 -- web c"},
		{"version as people ask for it", "--version", "version"},
		{"drift is plan with a switch", "drift web -n prod", "plan --drift --namespace=prod -- web"},
		{"diff is plan", "diff web ./c --set a=b", "plan --set=a=b -- web ./c"},
		{"nothing", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parse(newCommands(testEnv(t, "deployer")), strings.Fields(test.line))
			if err != nil {
				t.Fatalf("parse(%s) fails: %v", test.line, err)
			}
			if got.String() != test.want {
				t.Errorf("parse(%s)\n got %s\nwant %s", test.line, got, test.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ line, want, hint string }{
		{"upgrade web ./chart --instal", "unknown flag --instal of upgrade", "did you mean --install?"},
		{"--namespce x lint", "unknown flag --namespce of lint", "did you mean --namespace?"},
		{"--namespce x", "unknown flag --namespce", "did you mean --namespace?"},
		{"upgrade web -ü", "unknown flag -ü of upgrade", "see deployer upgrade --help"},
		{"rollback web -1", "unknown flag -1 of rollback", "see deployer rollback --help"},
		{"upgrade web ./chart -n", "flag -n needs a value", "see deployer upgrade --help"},
		{"upgrade web ./chart --set", "flag --set needs a value", "see deployer upgrade --help"},
		{"upgarde web ./chart", `unknown command "upgarde"`, "did you mean upgrade?"},
		{"repo ad x y", `unknown command "ad" of repo`, "did you mean add?"},
		{"show ./chart", `unknown command "./chart" of show`, "see deployer show --help"},
		{"upgrade web c --conflict take", "unknown flag --conflict of upgrade", "did you mean --conflicts?"},
		{"upgrade web c --skip-crd", "unknown flag --skip-crd of upgrade", "did you mean --skip-crds?"},
		{"upgrade web c --force-conflict", "unknown flag --force-conflict of upgrade", "did you mean --force-conflicts?"},
		{"list --context prod", "unknown flag --context of list", "did you mean --kube-context?"},
		{"upgrade web c --set-str a=b", "unknown flag --set-str of upgrade", "did you mean --set-string?"},
		{"upgrade web c --no-wait", "unknown flag --no-wait of upgrade", "did you mean --wait=false?"},
		{"upgrade web c --alow-recreate", "unknown flag --alow-recreate of upgrade", "see deployer upgrade --help"},
		{"get vals web", `unknown command "vals" of get`, "did you mean values?"},
		{"frobnicate", `unknown command "frobnicate"`, "see deployer --help"},
	}
	for _, test := range tests {
		t.Run(test.line, func(t *testing.T) {
			_, err := parse(newCommands(testEnv(t, "deployer")), strings.Fields(test.line))
			if err == nil {
				t.Fatalf("parse(%s) accepts it, want: %s", test.line, test.want)
			}
			if err.Error() != test.want || program.CalledAs("deployer").Insert(output.Hint(err)) != test.hint {
				t.Errorf("parse(%s)\n got %s (%s)\nwant %s (%s)", test.line, err, output.Hint(err), test.want, test.hint)
			}
		})
	}
}

func TestParseHelp(t *testing.T) {
	for line, want := range map[string]string{
		"--help": "", "-h": "", "upgrade --help": "upgrade", "upgrade web ./c -h": "upgrade", "--help repo add": "repo add",
		"repo add -h x": "repo add", "repo --help": "repo", "upgrade -ih": "upgrade",
	} {
		got, err := parse(newCommands(testEnv(t, "deployer")), strings.Fields(line))
		if err != nil || got.help == noHelp || strings.Join(got.words, " ") != want {
			t.Errorf("parse(%s) = %+v, %v, want the help of %q", line, got, err, want)
		}
	}
	got, err := parse(newCommands(testEnv(t, "deployer")), []string{"upgrade", "--description", "--help", "a", "b"})
	if err != nil || got.help != noHelp {
		t.Errorf("--help as the value of a flag asks for help: %+v, %v", got, err)
	}
}

// What is parsed has to mean the same to the library.
func TestParsedLinesRun(t *testing.T) {
	var out, errOut bytes.Buffer
	args := []string{"deployer", "version", "--short", "-n", "a", "--namespace=b", "--debug=false", "--color", "never"}
	if code := execute(context.Background(), args, strings.NewReader(""), &out, &errOut); code != 0 || out.String() != "dev\n" {
		t.Errorf("%v exits with %d and prints %q, %q", args, code, out.String(), errOut.String())
	}
}
