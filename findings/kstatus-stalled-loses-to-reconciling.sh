#!/bin/sh
# sigs.k8s.io/cli-utils 0.37.2, kstatus. A custom resource says with the two conditions of kstatus itself that it is Reconciling and Stalled.
# The guess: stalled counts, as nothing more will happen. It counts only if it stands before the other in the list: the first of the two
# decides, though conditions are a map in all but form, whose order nobody promises.
. "$(dirname "$0")/lib/program.sh"
program sigs.k8s.io/cli-utils@v0.37.2 k8s.io/apimachinery@v0.37.2 <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	for _, types := range [][2]string{{"Reconciling", "Stalled"}, {"Stalled", "Reconciling"}} {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t","generation":1},
			"status":{"conditions":[{"type":%q,"status":"True"},{"type":%q,"status":"True"}]}}`, types[0], types[1])); err != nil {
			panic(err)
		}
		result, err := status.Compute(obj)
		if err != nil {
			panic(err)
		}
		fmt.Println(types, result.Status)
	}
}
GO
expect <<'OUT'
[Reconciling Stalled] InProgress
[Stalled Reconciling] Failed
OUT
