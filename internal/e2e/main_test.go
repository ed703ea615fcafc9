package e2e

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"deployer/internal/deployertest"
)

// deployerBinary is the program under test, built once for the test run.
var deployerBinary string

// atOnce is how many tests run in parallel for each processor, unless -parallel
// says so: they mostly wait for controllers.
const atOnce = 5

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(atOnce*runtime.GOMAXPROCS(0))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	deployertest.Main(m, &deployerBinary)
}
