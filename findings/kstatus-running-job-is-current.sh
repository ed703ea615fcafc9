#!/bin/sh
# sigs.k8s.io/cli-utils 0.37.2, kstatus. A Job that runs, one that is suspended, and one whose pods are being ended because it has failed.
# The guess: what still works is InProgress, what is suspended has nothing more to do and is Current, and what is failing is not Current.
# It is the other way round: a Job counts as Current as soon as it has begun, failing or not, and as InProgress for as long as it is
# suspended. Who waits for Current goes on before the Job is done, and waits forever for a Job that nobody is to run yet.
. "$(dirname "$0")/lib/program.sh"
program sigs.k8s.io/cli-utils@v0.37.2 k8s.io/apimachinery@v0.37.2 <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	for _, job := range [][2]string{
		{"running", `"spec":{"parallelism":1},"status":{"startTime":"2026-01-01T00:00:00Z","active":1}`},
		{"suspended", `"spec":{"suspend":true},"status":{"conditions":[{"type":"Suspended","status":"True"}]}`},
		{"failing", `"spec":{},"status":{"startTime":"2026-01-01T00:00:00Z","failed":1,"conditions":[{"type":"FailureTarget","status":"True"}]}`},
		{"complete", `"spec":{},"status":{"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Complete","status":"True"}]}`},
	} {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON([]byte(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","generation":1},` + job[1] + `}`)); err != nil {
			panic(err)
		}
		result, err := status.Compute(obj)
		if err != nil {
			panic(err)
		}
		fmt.Println(job[0], result.Status)
	}
}
GO
expect <<'OUT'
running Current
suspended InProgress
failing Current
complete Current
OUT
