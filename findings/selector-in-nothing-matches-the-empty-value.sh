#!/bin/sh
# k8s.io/apimachinery 0.37.2. A label selector asks for one of no values: a in (). The guess: it is an error, as an empty list is in the structured
# form of a selector, or matches nothing. It is read as a list with one empty value, and matches objects whose label is empty.
. "$(dirname "$0")/lib/program.sh"
program k8s.io/apimachinery@v0.37.2 <<'GO'
package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func main() {
	selector, err := labels.Parse("a in ()")
	if err != nil {
		panic(err)
	}
	for _, set := range []labels.Set{{"a": ""}, {"a": "x"}, {}} {
		fmt.Printf("%v: %v\n", map[string]string(set), selector.Matches(set))
	}
	_, err = metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn}}})
	fmt.Println("structured, refused:", err != nil)
}
GO
expect <<'OUT'
map[a:]: true
map[a:x]: false
map[]: false
structured, refused: true
OUT
