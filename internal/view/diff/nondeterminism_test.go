package diff

import (
	"strings"
	"testing"

	"deployer/internal/hide"
)

// TestRandom holds which changes are only what templates make up: those within
// what differs between two renderings.
func TestRandom(t *testing.T) {
	for _, test := range []struct{ name, live, first, again, want string }{
		{"a value", "a: {b: x1}", "a: {b: x2}", "a: {b: x3}", "a.b random"},
		{"another value", "a: {b: x1, c: y1}", "a: {b: x2, c: y2}", "a: {b: x3, c: y2}", "a.b random, a.c"},
		{"a number", "a: 1", "a: 2", "a: 3", "a random"},
		{"a part of a text", "a: user=bob;pw=k1k", "a: user=bob;pw=k2k", "a: user=bob;pw=k3k", "a random"},
		{"and another part", "a: user=bob;pw=k1k", "a: user=ann;pw=k2k", "a: user=ann;pw=k3k", "a"},
		{"more text than there is", "a: 'x;pw=k1k'", "a: 'pw=k2k'", "a: 'pw=k3k'", "a"},
		{"less text than there is", "a: 'pw=k1k'", "a: 'x;pw=k2k'", "a: 'x;pw=k3k'", "a"},
		{"a line", "a: \"x\\nk1\\ny\\n\"", "a: \"x\\nk2\\ny\\n\"", "a: \"x\\nk3\\ny\\n\"", "a random"},
		{"signs in common by chance", "a: 'k1.x?2'", "a: 'k2.y?3'", "a: 'k3.y!4'", "a random"},
		{"longer or shorter", "a: 'pw=k1 k2'", "a: 'pw=k3'", "a: 'pw=k4 k5'", "a random"},
		{"a field that comes and goes", "{}", "a: {x: 1}", "{}", "a random"},
		{"a field that comes", "{}", "a: k1", "a: k2", "a"},
		{"a key that is made up", "a: {k1: x, s: x}", "a: {k2: x, s: x}", "a: {k3: x, s: x}", "a.k1, a.k2 random"},
		{"in a list", "a: [{name: x, v: k1}, {name: z, v: 1}]", "a: [{name: x, v: k2}, {name: z, v: 2}]", "a: [{name: x, v: k3}, {name: z, v: 2}]", `a[name="x"].v random, a[name="z"].v`},
		{"guarded", "a: k1", "a: k1", "a: k1", ""},
		{
			"in a Secret", "apiVersion: v1\nkind: Secret\ndata: {p: azE=, m: dXNlcj1ib2I7cHc9azE=}",
			"apiVersion: v1\nkind: Secret\nstringData: {p: k2, m: user=bob;pw=k2}", "apiVersion: v1\nkind: Secret\nstringData: {p: k3, m: user=bob;pw=k3}",
			"data.m random, data.p random",
		},
		{
			"partly in a Secret", "apiVersion: v1\nkind: Secret\ndata: {m: dXNlcj1ib2I7cHc9azE=}",
			"apiVersion: v1\nkind: Secret\nstringData: {m: user=ann;pw=k2}", "apiVersion: v1\nkind: Secret\nstringData: {m: user=ann;pw=k3}",
			"data.m",
		},
		{
			"bytes in a Secret", "apiVersion: v1\nkind: Secret\ndata: {k: AP/+gIE=}",
			"apiVersion: v1\nkind: Secret\ndata: {k: AP/+gIJB}", "apiVersion: v1\nkind: Secret\ndata: {k: AP/+gA==}", "data.k random",
		},
		{
			"bytes in a Secret instead of text", "apiVersion: v1\nkind: Secret\ndata: {k: AP/+gIE=}",
			"apiVersion: v1\nkind: Secret\nstringData: {k: user=bob;pw=k2}", "apiVersion: v1\nkind: Secret\nstringData: {k: user=bob;pw=k3}", "data.k",
		},
		{"signs of patterns", "a: '(a.c)*[k1'", "a: '(a.c)*[k2'", "a: '(a.c)*[k3'", "a random"},
		{"other signs of patterns", "a: '(abc)*[k1'", "a: '(a.c)*[k2'", "a: '(a.c)*[k3'", "a"},
		{"an end that is also the beginning", "a: 'x=x=k'", "a: 'x=x=k2;x=x=x'", "a: 'x=x=k3;x=x=x'", "a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			first := object(t, test.first)
			result := object(t, test.first)
			result.Object = encoded(result.Object, hide.IsSecret(result))
			var got []string
			for _, c := range Fields(changeOf(t, object(t, test.live), result, nil, false), NewNondeterminism(first, object(t, test.again))) {
				text := c.Path
				if c.Random {
					text += " random"
				}
				got = append(got, text)
			}
			if all := strings.Join(got, ", "); all != test.want {
				t.Errorf("live %s, rendered %s, again %s: %q, want %q", test.live, test.first, test.again, all, test.want)
			}
		})
	}
}

// TestRandomIsOfAllRenderings: of values with few choices two may come out the
// same by chance.
func TestRandomIsOfAllRenderings(t *testing.T) {
	first, same, other := object(t, "a: x"), object(t, "a: x"), object(t, "a: w")
	for _, c := range Fields(changeOf(t, object(t, "a: v"), first, nil, false), NewNondeterminism(first, same, same, other)) {
		if !c.Random {
			t.Errorf("%s isn't taken for random", c.Path)
		}
	}
}
