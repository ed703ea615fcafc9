package kubetest

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// sharedNodes is the size of the cluster that test processes share: enough
	// for all packages at once.
	sharedNodes = "10"

	// sharedIdle is how long an unused cluster stays. Between two packages of a
	// run, the next test program may have to be compiled first.
	sharedIdle = "3m"

	// joinAttempts is how often we start a cluster that is gone when we arrive.
	joinAttempts = 3
)

// place is where a cluster is.
type place struct{ kubeconfig, auditLog string }

// findCluster gives the cluster that the environment names, or joins the shared
// development cluster. It gives nil if that hasn't been built.
func findCluster() (*place, error) {
	if kubeconfig := os.Getenv("DEPLOYER_TEST_KUBECONFIG"); kubeconfig != "" {
		return &place{kubeconfig: kubeconfig, auditLog: os.Getenv("DEPLOYER_TEST_AUDIT_LOG")}, nil
	}
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(root, "bin", "devcluster")
	info, err := os.Stat(binary)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the development cluster: %w", err)
	}
	dir, err := sharedDir(binary, info)
	if err != nil {
		return nil, err
	}
	return join(binary, dir)
}

// repositoryRoot finds the directory with our go.mod, above the working
// directory of the test.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte("module deployer\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("finding the repository: no go.mod of the module deployer above the working directory")
		}
		dir = parent
	}
}

// sharedDir is the directory of the cluster that all test processes of this
// checkout share. A newly built binary gets another one, so that tests never
// meet a cluster of the old; that stops by itself.
func sharedDir(binary string, info fs.FileInfo) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w; set HOME or XDG_CACHE_HOME", err)
	}
	hash := fnv.New64a()
	fmt.Fprint(hash, binary, info.Size(), info.ModTime().UnixNano())
	return filepath.Join(cache, "deployer", fmt.Sprintf("kubetest-%016x", hash.Sum64())), nil
}

// join starts the cluster in dir unless it runs, and keeps it running for as
// long as this process lives.
func join(binary, dir string) (*place, error) {
	var last error
	for range joinAttempts {
		var said bytes.Buffer
		cmd := exec.Command(binary, "up", "--dir", dir, "--nodes", sharedNodes, "--idle", sharedIdle)
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("starting the development cluster in %s: %w\n%s", dir, err, said.String())
		}
		kubeconfig := strings.TrimSpace(string(out))
		if err := holdShared(filepath.Join(dir, "users.lock")); err != nil {
			return nil, fmt.Errorf("joining the development cluster in %s: %w", dir, err)
		}
		// It may have gone for being idle before we held it; from now on it can't.
		if last = ready(kubeconfig); last == nil {
			return &place{kubeconfig: kubeconfig, auditLog: filepath.Join(dir, "audit.log")}, nil
		}
	}
	return nil, fmt.Errorf("the development cluster in %s doesn't stay: %w", dir, last)
}

// ready returns an error unless the API server answers.
func ready(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("the kubeconfig %s: %w", kubeconfig, err)
	}
	client.Timeout = 10 * time.Second
	defer client.CloseIdleConnections()
	response, err := client.Get(config.Host + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s/readyz answered %s", config.Host, response.Status)
	}
	return nil
}
