package e2e

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
)

// some draws at least so many of the words, in random order.
func some(random *rand.Rand, words []string, least int) []string {
	words = append([]string{}, words...)
	random.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	return words[:least+random.IntN(len(words)-least+1)]
}

// drawn are the templates of a chart that is drawn: a Deployment in many shapes
// and some smaller objects.
func drawn(random *rand.Rand) []string {
	templates := []string{drawnDeployment(random)}
	for _, name := range some(random, []string{"a", "b", "c"}, 0) {
		templates = append(templates, configMap(name, fmt.Sprint(random.IntN(3)))+data(random))
	}
	if random.IntN(2) == 0 {
		ports := "  ports:\n"
		for _, p := range some(random, []string{"{name: http, port: 80}", "{name: dns, port: 53}", "{name: udp, port: 53, protocol: UDP}"}, 1) {
			ports += "    - " + p + "\n"
		}
		templates = append(templates, "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec:\n  selector: {app: d}\n"+ports)
	}
	return templates
}

// data are more entries of a ConfigMap.
func data(random *rand.Rand) string {
	var out strings.Builder
	for _, key := range some(random, []string{"k1", "k2", "k3", "k4"}, 0) {
		fmt.Fprintf(&out, "  %s: \"%d\"\n", key, random.IntN(3))
	}
	return out.String()
}

func drawnDeployment(random *rand.Rand) string {
	var out strings.Builder
	out.WriteString("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d\n")
	out.WriteString(drawnMap(random, "  labels", []string{"l1", "l2", "l3"}))
	out.WriteString("spec:\n  replicas: " + fmt.Sprint(random.IntN(3)) + "\n")
	switch random.IntN(3) {
	case 0:
		out.WriteString("  strategy: {type: Recreate}\n")
	case 1:
		out.WriteString("  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}\n")
	}
	out.WriteString("  selector: {matchLabels: {app: d}}\n  template:\n    metadata:\n      labels: {app: d}\n")
	out.WriteString(drawnMap(random, "      annotations", []string{"x1", "x2"}))
	out.WriteString("    spec:\n      containers:\n")
	for _, name := range some(random, []string{"c1", "c2", "c3"}, 1) {
		fmt.Fprintf(&out, "        - name: %s\n          image: r/x:%d\n", name, random.IntN(2))
		if env := some(random, []string{"E1", "E2", "E3"}, 0); len(env) > 0 {
			out.WriteString("          env:\n")
			for _, e := range env {
				fmt.Fprintf(&out, "            - {name: %s, value: \"%d\"}\n", e, random.IntN(2))
			}
		}
		if random.IntN(2) == 0 {
			out.WriteString("          resources: {limits: {memory: 64Mi}}\n")
		}
	}
	return out.String()
}

func drawnMap(random *rand.Rand, field string, keys []string) string {
	chosen := some(random, keys, 0)
	sort.Strings(chosen)
	var entries []string
	for _, k := range chosen {
		entries = append(entries, fmt.Sprintf("%s: v%d", k, random.IntN(2)))
	}
	if len(entries) == 0 {
		return ""
	}
	return field + ": {" + strings.Join(entries, ", ") + "}\n"
}
