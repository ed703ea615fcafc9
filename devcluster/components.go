package main

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"os"
	"strings"
)

const (
	serviceRange = "10.96.0.0/16"
	serviceIP    = "10.96.0.1"
	issuer       = "https://kubernetes.default.svc.cluster.local"

	realNodeName = "real-0" // the node that scripts/realnode.sh runs

	// advertiseIP goes into the endpoints of the Service "kubernetes", where a
	// loopback address is refused; nothing connects to it (RFC 5737).
	advertiseIP = "192.0.2.1"
)

// component is one process of the cluster.
type component struct {
	name string // its role, and the name of its log
	args []string
}

// identity is a user of the API server with a token of its own, so that the
// audit log tells the parts of the cluster apart.
type identity struct {
	file  string // kubeconfig, relative to conf/; "" for the user's kubeconfig
	user  string
	group string
	token string
}

// ports are the free ports one start has picked.
type ports struct{ etcd, server int }

func (p ports) serverURL() string { return fmt.Sprintf("https://127.0.0.1:%d", p.server) }
func (p ports) etcdURL() string   { return fmt.Sprintf("http://127.0.0.1:%d", p.etcd) }

func etcd(l layout, p ports) component {
	return component{"etcd", []string{l.etcd(), p.etcdURL()}}
}

func apiServer(l layout, p ports) component {
	return component{"kube-apiserver", []string{
		"--etcd-servers=" + p.etcdURL(),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.server),
		"--advertise-address=" + advertiseIP,
		"--tls-cert-file=" + l.pki("apiserver.crt"),
		"--tls-private-key-file=" + l.pki("apiserver.key"),
		"--client-ca-file=" + l.pki("ca.crt"),
		"--token-auth-file=" + l.conf("tokens.csv"),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + serviceRange,
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + l.pki("ca.key"),
		"--service-account-signing-key-file=" + l.pki("ca.key"),
		"--kubelet-client-certificate=" + l.pki("apiserver.crt"),
		"--kubelet-client-key=" + l.pki("apiserver.key"),
		"--kubelet-preferred-address-types=InternalIP,Hostname",
		"--audit-policy-file=" + l.conf("audit-policy.yaml"),
		"--audit-log-path=" + l.auditLog(),
		// In MB. A rotated log would hide what a test has done before.
		"--audit-log-maxsize=1000000",
		// Many tests at once are many requests at once.
		"--max-requests-inflight=1600",
		"--max-mutating-requests-inflight=800",
	}}
}

func controllerManager(l layout) component {
	return component{"kube-controller-manager", []string{
		"--kubeconfig=" + l.conf("kube-controller-manager"),
		"--leader-elect=false",
		"--secure-port=0",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + l.pki("ca.key"),
		"--root-ca-file=" + l.pki("ca.crt"),
		"--cluster-signing-cert-file=" + l.pki("ca.crt"),
		"--cluster-signing-key-file=" + l.pki("ca.key"),
		// A busy machine must not make simulated nodes look dead.
		"--node-monitor-grace-period=5m",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}}
}

func kubeScheduler(l layout) component {
	return component{"kube-scheduler", []string{
		"--kubeconfig=" + l.conf("kube-scheduler"),
		"--leader-elect=false",
		"--secure-port=0",
	}}
}

func simulatedNodes(l layout) component {
	return component{"kwok", []string{l.conf("kwok"), l.conf("stages.yaml")}}
}

//go:embed stages.yaml
var stages []byte

//go:embed audit-policy.yaml
var auditPolicy []byte

// writeConf writes all files that the components read: keys, tokens, the
// kubeconfig of each identity, the audit policy and the rules of simulated pods.
func writeConf(l layout, p ports) error {
	if err := writePKI(l); err != nil {
		return err
	}
	ca, err := os.ReadFile(l.pki("ca.crt"))
	if err != nil {
		return fmt.Errorf("reading the cluster's authority: %w", err)
	}
	var tokens strings.Builder
	for _, id := range []identity{
		{user: "admin", group: "system:masters"},
		{file: "kube-controller-manager", user: "system:kube-controller-manager", group: "system:masters"},
		{file: "kube-scheduler", user: "system:kube-scheduler", group: "system:masters"},
		{file: "kwok", user: "kwok", group: "system:masters"},
		{file: "kubelet", user: "system:node:" + realNodeName, group: "system:nodes"},
	} {
		id.token = rand.Text()
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", id.token, id.user, id.user, id.group)
		if err := writeKubeconfig(l, p.serverURL(), ca, id); err != nil {
			return err
		}
	}
	for name, content := range map[string][]byte{
		"tokens.csv":        []byte(tokens.String()),
		"stages.yaml":       stages,
		"audit-policy.yaml": auditPolicy,
	} {
		if err := os.WriteFile(l.conf(name), content, 0o600); err != nil {
			return fmt.Errorf("writing the cluster's configuration: %w", err)
		}
	}
	return nil
}
