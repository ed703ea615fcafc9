#!/bin/sh
# sigs.k8s.io/kustomize/api 0.21.1, client-go's strategic merge patch 0.37.2. A patch gives port 53 of a container a host port; the manifest says that the port is
# TCP, and the patch doesn't. The guess: the port is found by its number, as kubectl does, or taken for another one. Kustomize drops it
# without a word: the build has neither. The same goes for a patch that is to delete the port.
. "$(dirname "$0")/lib/program.sh"
program sigs.k8s.io/kustomize/api@v0.21.1 sigs.k8s.io/kustomize/kyaml@v0.21.1 k8s.io/api@v0.37.2 k8s.io/apimachinery@v0.37.2 sigs.k8s.io/yaml@v1.6.0 <<'GO'
package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

func pod(port string) string {
	return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","ports":[` + port + `]}]}}`
}

// ports of the pod's container
func ports(manifest []byte) string {
	var pod struct {
		Spec struct{ Containers []struct{ Ports []map[string]any } }
	}
	if err := yaml.Unmarshal(manifest, &pod); err != nil {
		panic(err)
	}
	return fmt.Sprint(pod.Spec.Containers[0].Ports)
}

func main() {
	base := pod(`{"containerPort":53,"protocol":"TCP"}`)
	for _, port := range []string{`{"containerPort":53,"protocol":"TCP","hostPort":53}`, `{"containerPort":53,"hostPort":53}`, `{"containerPort":53,"$patch":"delete"}`} {
		fmt.Println(port)
		merged, err := strategicpatch.StrategicMergePatch([]byte(base), []byte(pod(port)), corev1.Pod{})
		if err != nil {
			panic(err)
		}
		fmt.Println("kubectl  ", ports(merged))
		files := filesys.MakeFsInMemory()
		for name, content := range map[string]string{"kustomization.yaml": "resources: [pod.yaml]\npatches: [{path: patch.yaml}]\n", "pod.yaml": base, "patch.yaml": pod(port)} {
			if err := files.WriteFile(name, []byte(content)); err != nil {
				panic(err)
			}
		}
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, ".")
		if err != nil {
			panic(err)
		}
		manifest, err := built.AsYaml()
		if err != nil {
			panic(err)
		}
		fmt.Println("kustomize", ports(manifest))
	}
}
GO
expect <<'OUT'
{"containerPort":53,"protocol":"TCP","hostPort":53}
kubectl   [map[containerPort:53 hostPort:53 protocol:TCP]]
kustomize [map[containerPort:53 hostPort:53 protocol:TCP]]
{"containerPort":53,"hostPort":53}
kubectl   [map[containerPort:53 hostPort:53 protocol:TCP]]
kustomize [map[containerPort:53 protocol:TCP]]
{"containerPort":53,"$patch":"delete"}
kubectl   []
kustomize [map[containerPort:53 protocol:TCP]]
OUT
