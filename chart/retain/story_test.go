package retain

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"deployer/internal/kubetest"
)

// TestPasswordsStayWithTheirUsers tells a random story of each form: in thousands of edits of the list of users, no user ever
// gets a password that another one has had, and where users are recognised, each keeps the password as long as there is one.
func TestPasswordsStayWithTheirUsers(t *testing.T) {
	names := []string{"root", "bob", "mallory", "eve", "carl", "dora"}
	steps := 60 // of each form
	if os.Getenv("DEPLOYER_TEST_LONG") != "" {
		steps = 1000
	}
	if testing.Short() {
		steps = 10
	}
	seed := kubetest.Seed(t)
	for name, form := range entryForms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, uint64(len(name))))
			s := newStory(t)
			owner := map[string]string{} // by password
			var last map[string]string
			list, listBefore := []string{"root"}, []string{}
			for step := range steps {
				result := s.deploy(form.template, users(list...))
				s.earlier = s.earlier[max(0, len(s.earlier)-2):]
				now := passwords(result.Manifest)
				if len(now) != len(list) {
					t.Fatalf("%d: %v for %v", step, now, list)
				}
				for user, password := range now {
					if was, known := owner[password]; known && was != user {
						t.Fatalf("%d: %s gets a password of %s:\n%s\n%s", step, user, was, result.Manifest, result.lines())
					}
					owner[password] = user
					before, there := last[user]
					if !there || before == password {
						continue
					}
					if isRecognizable(name, user, listBefore, list) {
						t.Fatalf("%d: the password of %s is renewed:\n%s\n%s", step, user, result.Manifest, result.lines())
					}
					if !slices.ContainsFunc(result.Values, func(v Value) bool { return v.Reason != "" }) {
						t.Fatalf("%d: the password of %s is renewed, and nothing says why:\n%s", step, user, result.lines())
					}
				}
				last, listBefore = now, list
				list = edited(random, list, names)
			}
		})
	}
}

// edited is a list with one random edit, or the same list.
func edited(random *rand.Rand, list, names []string) []string {
	list = slices.Clone(list)
	at := random.IntN(len(list))
	var others []string
	for _, name := range names {
		if !slices.Contains(list, name) {
			others = append(others, name)
		}
	}
	switch edit := random.IntN(5); {
	case edit == 0 && len(others) > 0:
		return slices.Insert(list, at, others[random.IntN(len(others))])
	case edit == 1 && len(list) > 1:
		return slices.Delete(list, at, at+1)
	case edit == 2 && len(others) > 0:
		list[at] = others[random.IntN(len(others))]
	case edit == 3:
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return list
}
