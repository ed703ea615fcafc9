#!/bin/sh
# apimachinery 0.37.2. A strategic merge patch adds an environment variable that refers to one that is there, and an init container. The guess: what is new
# comes last, as with server-side apply, so that `$(HOST)` is known where it is used. What is new comes first, so that the container
# sees the text `$(HOST)`, and the new init container runs before those that were to prepare its work.
. "$(dirname "$0")/lib/program.sh"
program k8s.io/api@v0.37.2 k8s.io/apimachinery@v0.37.2 <<'GO'
package main

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func main() {
	pod := `{"spec":{"initContainers":[{"name":"prepare"}],"containers":[{"name":"c","env":[{"name":"HOST","value":"h"}]}]}}`
	patch := `{"spec":{"initContainers":[{"name":"use"}],"containers":[{"name":"c","env":[{"name":"URL","value":"http://$(HOST)"}]}]}}`
	patched, err := strategicpatch.StrategicMergePatch([]byte(pod), []byte(patch), corev1.Pod{})
	if err != nil {
		panic(err)
	}
	var p corev1.Pod
	if err := json.Unmarshal(patched, &p); err != nil {
		panic(err)
	}
	for _, c := range p.Spec.InitContainers {
		fmt.Println("init container", c.Name)
	}
	for _, e := range p.Spec.Containers[0].Env {
		fmt.Println("variable", e.Name)
	}
}
GO
expect <<'OUT'
init container use
init container prepare
variable URL
variable HOST
OUT
