package retain

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"deployer/internal/kubetest"
)

// A copyPlace is one of the places that a password stands in. of is its text for a list of users, and
// owners finds the passwords in what is deployed, with a user before each.
type copyPlace struct {
	of     func(names []string, host string) string
	owners *regexp.Regexp
}

// ofEach is a text for each user, in which USER and PASSWORD are replaced.
func ofEach(text string, names []string) string {
	out := ""
	for _, name := range names {
		out += strings.NewReplacer("USER", name, "PASSWORD", passwordOf(name)).Replace(text)
	}
	return out
}

func passwordOf(name string) string { return `{{ get $all "` + name + `" }}` }

func named(name, object string) string { return strings.Replace(object, "name: s", "name: "+name, 1) }

// copyPlaces are where charts have copies of passwords.
var copyPlaces = map[string]copyPlace{
	"fields": {func(names []string, _ string) string {
		return named("fields", secret) + "stringData:\n  kind: users\n" + ofEach("  USER: PASSWORD\n", names)
	}, regexp.MustCompile(`(?m)^  (\w+): (\w{12})$`)},
	"connection strings": {func(names []string, host string) string {
		return named("urls", secret) + "stringData:\n  a: |\n    users\n" + ofEach("    postgres://USER:PASSWORD@"+host+"/app\n", names)
	}, regexp.MustCompile(`//(\w+):(\w{12})@`)},
	"variables of pods": {func(names []string, host string) string {
		return pods("env: [{name: HOST, value: " + host + "}, " + ofEach(`{name: USER, value: "postgres://USER:PASSWORD@db"}, `, names) + "]")
	}, regexp.MustCompile(`//(\w+):(\w{12})@`)},
	"dockerconfigjson": {func(names []string, _ string) string {
		auths := ""
		for i, name := range names {
			auths += strings.NewReplacer("USER", name, "ALL", passwordOf(name)).Replace(
				`{{ if ` + fmt.Sprint(i) + ` }},{{ end }}"USER.io":{"username":"USER","password":"ALL","auth":"{{ printf "USER:%s" (get $all "USER") | b64enc }}"}`)
		}
		return named("docker", secret) + `{{ define "d" }}{{ $all := .Values.all }}{"auths":{ ` + auths + " } }{{ end }}data: {.dockerconfigjson: {{ include \"d\" . | b64enc }}}"
	}, regexp.MustCompile(`"username":"(\w+)","password":"(\w{12})"`)},
	"Basic authorization": {func(names []string, _ string) string {
		return config + "data:\n  a: |\n    x: y\n" + ofEach("    USER: Basic {{ printf \"USER:%s\" (get $all \"USER\") | b64enc }}\n", names)
	}, regexp.MustCompile(`(\w+):(\w{12})`)},
	"YAML": {func(names []string, host string) string {
		return named("yaml", secret) + "stringData:\n  a: |\n    host: " + host + "\n    users:\n    - {name: nobody}\n" + ofEach("    - {name: USER, url: \"http://USER:PASSWORD@h\"}\n", names)
	}, regexp.MustCompile(`//(\w+):(\w{12})@`)},
	"one of one": {func(names []string, host string) string {
		return named("one", secret) + "stringData: {host: " + host + ", username: " + names[0] + ", password: " + passwordOf(names[0]) + "}"
	}, regexp.MustCompile(`username: (\w+), password: (\w{12})`)},
	"a custom resource": {func(names []string, _ string) string {
		return strings.TrimSuffix(ofEach("apiVersion: example.com/v1\nkind: Account\nmetadata: {name: USER}\nspec: {login: USER, password: PASSWORD}\n---\n", names), "---\n")
	}, regexp.MustCompile(`login: (\w+), password: (\w{12})`)},
}

// withPlaces is a chart with copies of the users' passwords, and one of the first user's where nothing says whose it is.
func withPlaces(names, places []string, host string, nameless bool) string {
	out := []string{`{{ $all := dict }}{{ range list "` + strings.Join(names, `" "`) + `" }}{{ $_ := set $all . (randAlphaNum 12) }}{{ end }}{{ $_ := set .Values "all" $all }}` + config + "data: {x: y}"}
	out[0] = strings.Replace(out[0], "name: c", "name: always", 1)
	for _, place := range places {
		out = append(out, copyPlaces[place].of(names, host))
	}
	if nameless {
		out = append(out, named("copy", secret)+"stringData: {nameless: "+passwordOf(names[0])+"}")
	}
	return strings.Join(out, "\n---\n")
}

// TestCopiedPasswordsStayWithTheirUsers tells random stories of passwords that stand in several places, which come and go as their
// users do: no user ever gets a password that another one has had, all copies of a password are the same, and where nothing changes
// nothing is renewed.
func TestCopiedPasswordsStayWithTheirUsers(t *testing.T) {
	stories, steps := 8, 25
	if os.Getenv("DEPLOYER_TEST_LONG") != "" {
		stories, steps = 100, 100
	}
	if testing.Short() {
		stories = 2
	}
	var all []string
	for place := range copyPlaces {
		all = append(all, place)
	}
	slices.Sort(all)
	seed := kubetest.Seed(t)
	for story := range stories {
		t.Run(fmt.Sprint(story), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, uint64(story)))
			s := newStory(t)
			names, places, host, nameless := []string{"root", "bob"}, []string{all[story%len(all)]}, "db", story%2 == 0
			owner, last, template, placesBefore := map[string]string{}, map[string]string{}, "", []string{}
			for step := range steps {
				before := template
				template = withPlaces(names, places, host, nameless)
				result := s.deploy(template, nil)
				s.earlier = s.earlier[max(0, len(s.earlier)-2):]
				now := copiedPasswords(t, result.Manifest, places)
				for user, password := range now {
					if was, known := owner[password]; known && was != user {
						t.Fatalf("%d: %s gets a password of %s:\n%s\n%s\nfrom\n%s", step, user, was, result.Manifest, result.lines(), s.earlier[max(0, len(s.earlier)-2)].Manifest)
					}
					owner[password] = user
					if was, known := last[user]; known && was != password {
						_, isElsewhere := copiedPasswords(t, result.Manifest, slices.DeleteFunc(slices.Clone(places), func(p string) bool { return p == "variables of pods" }))[user]
						if before == template && isElsewhere { // or it restarts the pods
							t.Fatalf("%d: the password of %s is renewed without a change:\n%s\n%s", step, user, result.Manifest, result.lines())
						}
						hasStayed := slices.ContainsFunc(places, func(p string) bool { return slices.Contains(placesBefore, p) })
						if hasStayed && !slices.ContainsFunc(result.Values, func(v Value) bool { return v.Reason != "" }) {
							t.Fatalf("%d: the password of %s is renewed, and nothing says why:\n%s", step, user, result.lines())
						}
					}
				}
				if nameless && !strings.Contains(result.Manifest, "{nameless: "+now[names[0]]+"}") {
					t.Fatalf("%d: the copy of %s isn't %s:\n%s\n%s", step, names[0], now[names[0]], result.Manifest, result.lines())
				}
				last, placesBefore = now, places
				switch random.IntN(4) {
				case 0:
					place := all[random.IntN(len(all))]
					if i := slices.Index(places, place); i < 0 {
						places = append(slices.Clone(places), place)
					} else if len(places) > 1 {
						places = slices.Delete(slices.Clone(places), i, i+1)
					}
				case 1:
					host = []string{"db", "db2", "other"}[random.IntN(3)]
					nameless = nameless != (random.IntN(3) == 0)
				default:
					names = edited(random, names, []string{"root", "bob", "mallory", "eve", "carl"})
				}
			}
		})
	}
}

// copiedPasswords are the passwords in places of a manifest by their users. It fails if a user has several.
func copiedPasswords(t *testing.T, manifest string, places []string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for range 2 { // base64 in base64
		manifest = runs().ReplaceAllStringFunc(manifest, func(run string) string {
			if text, err := decode64(run); err == nil && isReadable([]byte(text)) {
				return text
			}
			return run
		})
	}
	for _, place := range places {
		for _, m := range copyPlaces[place].owners.FindAllStringSubmatch(manifest, -1) {
			if was, known := out[m[1]]; known && was != m[2] {
				t.Fatalf("%s has %s and %s in %s:\n%s", m[1], was, m[2], place, manifest)
			}
			out[m[1]] = m[2]
		}
	}
	return out
}

// TestHtpasswdStaysWithItsUsers tells a random story of salted hashes: each is that of its user's password if that stands elsewhere,
// no user ever gets the hash of another one, and where nothing changes none is made anew.
func TestHtpasswdStaysWithItsUsers(t *testing.T) {
	steps := 6
	if testing.Short() {
		steps = 2
	}
	seed := kubetest.Seed(t)
	for story, passwords := range []string{"  USER: PASSWORD\n", "  kind: none\n"} {
		t.Run(strings.TrimSpace(passwords), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, uint64(story)))
			s := newStory(t)
			names, owner, last := []string{"root", "bob"}, map[string]string{}, map[string]string{}
			before := ""
			for step := range steps {
				fields := passwords
				if story == 0 {
					fields = ofEach(passwords, names)
				}
				template := withPlaces(names, nil, "", false) + "\n---\n" + secret + "stringData:\n" + fields +
					"  auth: |\n" + ofEach("    {{ htpasswd \"USER\" (get $all \"USER\") }}\n", names)
				result := s.deploy(template, nil)
				s.earlier = s.earlier[max(0, len(s.earlier)-2):]
				now := map[string]string{}
				for _, m := range regexp.MustCompile(`(\w+):(`+saltedHash+`)`).FindAllStringSubmatch(result.Manifest, -1) {
					user, hash := m[1], m[2]
					now[user] = hash
					if was, known := owner[hash]; known && was != user {
						t.Fatalf("%d: %s gets a hash of %s:\n%s\n%s", step, user, was, result.Manifest, result.lines())
					}
					owner[hash] = user
					if before == template && last[user] != hash {
						t.Fatalf("%d: the hash of %s is another one without a change:\n%s\n%s", step, user, result.Manifest, result.lines())
					}
					if story > 0 {
						continue
					}
					password := field(t, result.Manifest, "Secret/s", "stringData", user).(string)
					if bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) != nil {
						t.Fatalf("%d: the hash of %s isn't that of %s:\n%s\n%s", step, user, password, result.Manifest, result.lines())
					}
				}
				if len(now) != len(names) {
					t.Fatalf("%d: %v for %v:\n%s", step, now, names, result.Manifest)
				}
				last, before = now, template
				names = edited(random, names, []string{"root", "bob", "mallory", "eve"})
			}
		})
	}
}
