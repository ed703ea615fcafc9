package main

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// contextName is the only context in a kubeconfig of the cluster.
const contextName = "devcluster"

// writeKubeconfig writes the kubeconfig of one identity.
func writeKubeconfig(l layout, server string, ca []byte, id identity) error {
	path := l.kubeconfig()
	if id.file != "" {
		path = l.conf(id.file)
	}
	config := api.NewConfig()
	config.Clusters[contextName] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[id.user] = &api.AuthInfo{Token: id.token}
	config.Contexts[contextName] = &api.Context{Cluster: contextName, AuthInfo: id.user}
	config.CurrentContext = contextName
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig %s: %w", path, err)
	}
	return nil
}

// newClient reaches the cluster with the given kubeconfig and nothing else, in
// particular not with what the environment says.
func newClient(kubeconfig string) (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	config.UserAgent = "devcluster"
	config.QPS, config.Burst = 200, 400
	return kubernetes.NewForConfig(config)
}
