package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The linker says nothing when a variable that it should set isn't there.
func TestBuildsSetVariablesThatAreThere(t *testing.T) {
	source, err := os.ReadFile("program.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../../Makefile", "../../Dockerfile", "../../scripts/release.sh"} {
		set := regexp.MustCompile(`-X main\.(\w+)=`).FindAllStringSubmatch(read(t, path), -1)
		if len(set) != 2 {
			t.Errorf("%s sets %d variables, want 2", path, len(set))
		}
		for _, m := range set {
			if !regexp.MustCompile(`(?m)^\s+` + m[1] + `\s+= "`).Match(source) {
				t.Errorf("%s sets main.%s, which program.go doesn't have", path, m[1])
			}
		}
	}
}

// The image has the program and nothing to run it by but a number, so that
// runAsNonRoot can be checked; the program has to need no library.
func TestDockerfileMakesABareImage(t *testing.T) {
	stages := strings.Split(read(t, "../../Dockerfile"), "\nFROM ")
	build, image := stages[1], stages[len(stages)-1]
	for stage, patterns := range map[string][]string{
		build: {`CGO_ENABLED=0 GOOS=\$TARGETOS GOARCH=\$TARGETARCH`, `-o /out/bin/deployer \./cmd/deployer`, `ca-certificates\.crt /out/etc/ssl/certs/`},
		image: {`^scratch\n`, `(?m)^COPY --from=build /out /$`, `(?m)^USER [1-9]\d*:[1-9]\d*$`, `(?m)^ENTRYPOINT \["/bin/deployer"\]$`},
	} {
		for _, p := range patterns {
			if !regexp.MustCompile(p).MatchString(stage) {
				t.Errorf("the Dockerfile has nothing like %s in the stage\n%s", p, stage)
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
