package ordering

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"deployer/internal/kube"
)

// kindOfWave has a kind of each wave of InstallOrder.
var kindOfWave = []string{"Namespace", "CustomResourceDefinition", "ConfigMap", "Service", "Deployment", "Ingress", "Custom", "APIService"}

// nodesOf makes nodes of lines such as "c 3 w=5: a b=present !n", which is c, of a
// kind of wave 3, of weight 5, after a is ready and b is there; n is a need that
// nobody states.
func nodesOf(t *testing.T, lines ...string) []Node {
	t.Helper()
	nodes, index := make([]Node, len(lines)), map[string]int{}
	for i, l := range lines {
		head, _, _ := strings.Cut(l, ":")
		words := strings.Fields(head)
		index[words[0]] = i
		nodes[i].ID = kube.ID{Kind: "Deployment", Name: words[0]}
		for _, word := range words[1:] {
			var number int
			switch {
			case word == "outside":
				nodes[i].Outside = []Dependency{{ID: kube.ID{Kind: "Secret", Name: "outside"}, Outside: true}}
			case strings.HasPrefix(word, "w="):
				fmt.Sscanf(word, "w=%d", &number)
				nodes[i].Weight = &number
			default:
				fmt.Sscanf(word, "%d", &number)
				nodes[i].ID.Kind = kindOfWave[number]
			}
		}
	}
	for i, l := range lines {
		_, tail, _ := strings.Cut(l, ":")
		for _, word := range strings.Fields(tail) {
			e := Edge{State: Ready, Reason: "depends-on"}
			name, present := strings.CutSuffix(word, "=present")
			if present {
				e.State = Present
			}
			if name, e.Implied = strings.CutPrefix(name, "!"); e.Implied {
				e.Reason = "which is its namespace"
			}
			to, ok := index[name]
			if !ok {
				t.Fatalf("no node %s", name)
			}
			e.To = to
			nodes[i].Edges = append(nodes[i].Edges, e)
		}
	}
	return nodes
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  string // "a b|c": a and b at once, then c
	}{
		{"kinds only", []string{"d 4", "s 3", "c 2", "n 0"}, "n|c|s|d"},
		{"who needs to see nothing ready goes ahead", []string{"a 4", "b 4: a", "c 4: a=present"}, "a|c|b"},
		{"within a kind", []string{"app 4: db", "db 4", "hpa 5"}, "db|app|hpa"},
		{"with the kinds", []string{"app 4: conf=present", "conf 2", "db 4"}, "conf|app db"},
		{"against the kinds", []string{"conf 2: db", "db 4", "svc 3", "other 4", "hpa 5"}, "svc|db other|conf|hpa"},
		{"a chain against the kinds", []string{"a 2: b", "b 3: c", "c 4"}, "c|b|a"},
		{"a diamond", []string{"a 4", "b 4: a", "c 4: a", "d 4: b c", "e 4: a d"}, "a|b c|d|e"},
		{"weights", []string{"late 2 w=5", "conf 2", "web 4", "first 6 w=-1"}, "first|conf|web|late"},
		{"a weight comes before kinds", []string{"a 2 w=1", "b 4"}, "b|a"},
		{"early kinds come before all weights", []string{"n 0", "crd 1", "a 4 w=-9"}, "n|crd|a"},
		{"unless they state one", []string{"n 0 w=3", "a 4"}, "a|n"},
		{"who waits has the weight of what it waits for", []string{"a 4 w=5", "b 2: a", "z 2 w=9", "c 4"}, "c|a|b|z"},
		{"who waits comes before greater weights", []string{"a 4", "b 2: a", "z 2 w=9"}, "a|b|z"},
		{"what is outside holds up nobody of the kind", []string{"a 4 outside", "b 4", "c 5"}, "b|a|c"},
		{"a need that nobody states", []string{"n 0: db", "db 4", "a 2: !n"}, "db|n|a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := nodesOf(t, c.lines...)
			if bad := Cycles(nodes); len(bad) > 0 {
				t.Fatalf("cycles: %v", bad)
			}
			var got []string
			for _, wave := range Waves(nodes, func(int) bool { return true }) {
				var names []string
				for _, i := range wave.Nodes {
					names = append(names, nodes[i].ID.Name)
				}
				got = append(got, strings.Join(names, " "))
			}
			if strings.Join(got, "|") != c.want {
				t.Errorf("%q\ngot  %s\nwant %s", c.lines, strings.Join(got, "|"), c.want)
			}
		})
	}
}

// anyKind is the kind in the name of an object.
var anyKind = regexp.MustCompile(`(Namespace|ConfigMap|Deployment)/`)

func TestCycles(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  []string // each a part of one report, in order
	}{
		{"itself", []string{"a 4: a"}, []string{"K/a waits until K/a is ready (depends-on)"}},
		{"two", []string{"a 4: b", "b 4: a=present"}, []string{
			"K/a waits until K/b is ready (depends-on)\nK/b waits until K/a exists (depends-on)"}},
		{"the shortest of several", []string{"a 4: b c", "b 4: c", "c 4: a"}, []string{
			"K/a waits until K/c is ready (depends-on)\nK/c waits until K/a is ready"}},
		{"two knots, and who waits for one", []string{"a: b", "b: a", "c: d", "d: c", "e: a"}, []string{"K/a waits until K/b", "K/c waits until K/d"}},
		{"with a need that nobody states", []string{"n 0: web", "web 4: !n"}, []string{
			"K/n waits until K/web is ready (depends-on)\nK/web needs K/n, which is its namespace"}},
		{"with weights", []string{"a w=5", "b w=0: a"}, []string{
			"K/b waits until K/a is ready (depends-on)\nK/a (weight 5) waits for all objects of a lower weight, including K/b (weight 0)"}},
		{"with weights from afar", []string{"a w=5", "b: a", "c w=1: b"}, []string{
			"K/c waits until K/b is ready (depends-on)\nK/b waits until K/a is ready (depends-on)\nK/a (weight 5) waits"}},
		{"with no weight stated", []string{"a 2", "b 4 w=-1: a"}, []string{
			"K/a (weight 0) waits for all objects of a lower weight, including K/b (weight -1)"}},
		{"a need against a weight", []string{"n 0 w=5", "a 2 w=1: !n"}, []string{"K/a needs K/n, which is its namespace\nK/n (weight 5) waits"}},
		{"a circle and a weight", []string{"a: b", "b: a", "x w=5", "y w=1: x"}, []string{"K/a waits", "K/x (weight 5)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := nodesOf(t, c.lines...)
			got := Cycles(nodes)
			Waves(nodes, func(int) bool { return true }) // ends
			if len(got) != len(c.want) {
				t.Fatalf("%q\ngot  %v\nwant %q", c.lines, got, c.want)
			}
			for i, want := range c.want {
				if !strings.Contains(anyKind.ReplaceAllString(got[i].Text, "K/"), want) {
					t.Errorf("%q\ngot  %s\nwant %s", c.lines, anyKind.ReplaceAllString(got[i].Text, "K/"), want)
				}
			}
		})
	}
}
