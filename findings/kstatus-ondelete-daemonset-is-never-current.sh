#!/bin/sh
# sigs.k8s.io/cli-utils 0.37.2, kstatus. A StatefulSet and a DaemonSet have the update strategy OnDelete and pods of the former revision, all
# ready. The guess: both are treated alike. The StatefulSet is Current, and so it would be if no pod were ready; the DaemonSet is
# InProgress until somebody deletes its pods.
. "$(dirname "$0")/lib/program.sh"
program sigs.k8s.io/cli-utils@v0.37.2 k8s.io/apimachinery@v0.37.2 <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	for _, o := range [][2]string{
		{"StatefulSet, all ready", `"StatefulSet","spec":{"replicas":2,"updateStrategy":{"type":"OnDelete"}},"status":{"observedGeneration":2,"replicas":2,"readyReplicas":2,"currentReplicas":2}`},
		{"StatefulSet, none ready", `"StatefulSet","spec":{"replicas":2,"updateStrategy":{"type":"OnDelete"}},"status":{"observedGeneration":2,"replicas":2}`},
		{"DaemonSet, all ready", `"DaemonSet","spec":{"updateStrategy":{"type":"OnDelete"}},"status":{"observedGeneration":2,"desiredNumberScheduled":2,"currentNumberScheduled":2,"numberReady":2,"numberAvailable":2}`},
	} {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON([]byte(`{"apiVersion":"apps/v1","metadata":{"name":"o","generation":2},"kind":` + o[1] + `}`)); err != nil {
			panic(err)
		}
		result, err := status.Compute(obj)
		if err != nil {
			panic(err)
		}
		fmt.Println(o[0]+":", result.Status)
	}
}
GO
expect <<'OUT'
StatefulSet, all ready: Current
StatefulSet, none ready: Current
DaemonSet, all ready: InProgress
OUT
