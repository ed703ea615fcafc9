package retain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"deployer/internal/lazyregexp"
)

// A person is one of a list, who has a password.
type person struct{ name, mail string }

// entriesOf are entries of lists, one for each person, in which USER is the name, MAIL a second identity, N a number and L a letter that count the
// entries, and PW the password. A list in a manifest is written between others of wrappings.
var entriesOf = map[string]map[string]string{
	"text": {
		"passwd":                      "USER:PW:19000:0:99999:7:::\n",
		"pgpass":                      "db:5432:*:USER:PW\n",
		"pgbouncer":                   "\"USER\" \"PW\"\n",
		"CSV":                         "N,USER,PW,admin\n",
		"Redis":                       "user USER on >PW ~* +@all\n",
		"INI":                         "[USER]\npassword = PW\n\n",
		"INI by numbers":              "[userN]\nname = USER\npassword = PW\n",
		"INI by letters":              "[L]\nwho = USER\npassword = PW\n",
		"INI by mail":                 "[USER]\nmail = MAIL\npassword = PW\n",
		"INI below comments":          "# USER\n[account N]\npassword = PW\n",
		"INI below two comments":      "# user USER\n# who may do all\n[account-N]\npassword = PW\n",
		"TOML":                        "[[user]]\nname = \"USER\"\nmail = \"MAIL\"\npassword = \"PW\"\n",
		"TOML of grantees":            "[[grant]]\ngrantee = \"USER\"\npassword = \"PW\"\n",
		"TOML branches":               "[[user]]\nlogin = \"USER\"\n[user.auth]\npassword = \"PW\"\n",
		"env":                         "USER_PASSWORD=PW\n",
		"env by numbers":              "USER_N=USER\nPASSWORD_N=PW\n",
		"env by letters":              "USER_L=USER\nPASSWORD_L=PW\n",
		"env of letters and who":      "WHO_L=USER\nPASSWORD_L=PW\n",
		"env of mails":                "export USER_MAIL=MAIL\nexport USER_PASSWORD=PW\n",
		"properties by letters":       "what.L=USER\npassword.L=PW\n",
		"properties by numbers":       "what.N=USER\npassword.N=PW\n",
		"properties of letters first": "L.what=USER\nL.password=PW\n",
		"properties by index":         "users[N].whom=USER\nusers[N].password=PW\n",
		"pairs":                       "user=USER\npassword=PW\n",
		"pairs in blocks":             "user=USER\npassword=PW\n\n",
		"unknown pairs":               "grantee=USER\npassword=PW\n",
		"unknown pairs in blocks":     "grantee=USER\npassword=PW\n\n",
		"comments":                    "# USER\npassword=PW\n",
		"comments in blocks":          "# the password of USER\npassword=PW\n\n",
		"two comments":                "# user USER\n# changed by nobody\npassword=PW\n",
		"two comments in blocks":      "# user USER\n# changed by nobody\npassword=PW\n\n",
		"comments of C":               "/* the password of USER */\npassword = PW;\n",
		"comments of C in lines":      "/*\n * the password of USER\n */\npassword = PW;\n",
		"comments of C in blocks":     "/*\n * USER\n */\npassword = PW;\n\n",
		"comments of XML in lines":    "<!--\n  the account of USER\n-->\n<password>PW</password>\n",
		"comments by numbers":         "# USER\nPASSWORD_N=PW\n",
		"comments by letters":         "# USER may do all\nPASSWORD_L=PW\n",
		"comments of many by numbers": "# USER\n# may do all\nPASSWORD_N=PW\n",
		"comments behind":             "password_N=PW # USER\n",
		"comments behind by letters":  "password-L: PW # the one of USER\n",
		"netrc":                       "machine h login USER password PW\n",
		"netrc in lines":              "machine h\nlogin USER\npassword PW\n",
		"netrc indented":              "machine hN\n  login USER\n  password PW\n",
		"SQL":                         "CREATE USER USER WITH PASSWORD 'PW';\n",
		"SQL in lines":                "CREATE USER USER\nWITH PASSWORD 'PW';\n",
		"SQL of grants":               "ALTER ROLE r PASSWORD 'PW';\nGRANT r TO USER;\n",
		"SQL of comments":             "-- for USER\nALTER ROLE rN PASSWORD 'PW';\n",
		"HCL":                         "user \"USER\" {\n  password = \"PW\"\n}\n",
		"HCL of grantees":             "grant {\n  grantee = \"USER\"\n  password = \"PW\"\n}\n",
		"HCL branches":                "db {\n  profile {\n    login = USER\n  }\n  password = PW\n}\n",
		"XML in a line":               "<user name=\"USER\" password=\"PW\"/>\n",
		"XML":                         "<user>\n<name>USER</name>\n<password>PW</password>\n</user>\n",
		"XML of mails":                "<user>\n<name>USER</name>\n<email>MAIL</email>\n<password>PW</password>\n</user>\n",
		"XML of grantees":             "<x>\n<grantee>USER</grantee>\n<pw>PW</pw>\n</x>\n",
		"XML of indented grantees":    "  <x>\n    <grantee>USER</grantee>\n    <pw>PW</pw>\n  </x>\n",
		"XML by numbers":              "<xN>\n<who>USER</who>\n<pw>PW</pw>\n</xN>\n",
		"XML branches":                "<user>\n<profile>\n<login>USER</login>\n</profile>\n<auth>\n<password>PW</password>\n</auth>\n</user>\n",
		"XML of unknown branches":     "<user>\n<profile>\n<who>USER</who>\n</profile>\n<auth>\n<password>PW</password>\n</auth>\n</user>\n",
		"XML of comments":             "<!-- USER -->\n<auth>\n<password>PW</password>\n</auth>\n",
		"Hadoop":                      "<property>\n<name>USER.password</name>\n<value>PW</value>\n</property>\n",
		"Hadoop by numbers":           "<property>\n<name>uN.user</name>\n<value>USER</value>\n</property>\n<property>\n<name>uN.password</name>\n<value>PW</value>\n</property>\n",
		"Hadoop by letters":           "<property>\n<name>L.who</name>\n<value>USER</value>\n</property>\n<property>\n<name>L.password</name>\n<value>PW</value>\n</property>\n",
		"Hadoop of descriptions":      "<property>\n<name>pN</name>\n<value>PW</value>\n<description>the password of USER</description>\n</property>\n",
		"XML of descriptions":         "<entry>\n<description>the password of USER</description>\n<value>PW</value>\n</entry>\n",
		"URLs":                        "postgres://USER:PW@db/app\n",
		"URLs by numbers":             "urlN=postgres://USER:PW@db/app\n",
		"JDBC":                        "jdbc:postgresql://h:5432/db?user=USER&password=PW\n",
		"htaccess":                    "<Directory /N>\n  # USER\n  Token PW\n</Directory>\n",
		"nginx":                       "location /N {\n  add_header X-User USER;\n  add_header X-Token PW;\n}\n",
		"prose":                       "Dear USER,\nyour password is PW.\n\n",
		"prose of sentences":          "The password of USER is\nPW\n",
		"a sentence":                  "The password of USER is PW\n",
		"LDIF":                        "dn: cn=USER,dc=x\nuserPassword: PW\n\n",
		"documents":                   "---\nuser: USER\npassword: PW\n",
		"documents of grantees":       "---\ngrantee: USER\npassword: PW\n",
		"YAML list":                   "- login: USER\n  secret: PW\n",
		"YAML list of grantees":       "- grantee: USER\n  secret: PW\n",
		"YAML list of mails":          "- {name: USER, email: MAIL, password: PW}\n",
		"YAML list by numbers":        "- name: nN\n  user: USER\n  password: PW\n",
		"YAML list by numbers of who": "- name: nN\n  who: USER\n  password: PW\n",
		"YAML list by letters of who": "- id: L\n  who: USER\n  password: PW\n",
		"YAML list of recipients":     "- recipients: [USER]\n  password: PW\n",
		"YAML list of branches":       "- name: nN\n  profile: {login: USER}\n  auth: {password: PW}\n",
		"YAML map":                    "USER: PW\n",
		"YAML map of maps":            "USER: {password: PW}\n",
		"YAML map by numbers":         "uN: {login: USER, password: PW}\n",
		"YAML map by letters":         "L: {login: USER, password: PW}\n",
		"YAML map of who":             "L: {who: USER, pw: PW}\n",
		"YAML map of recipients":      "L: {recipients: [USER], pw: PW}\n",
		"YAML map of branches":        "L: {profile: {who: USER}, auth: {pw: PW}}\n",
		"YAML map below comments":     "# the account of USER\nL:\n  password: PW\n",
		"YAML map with comments":      "L:\n  # for USER\n  password: PW\n",
		"YAML fields by letters":      "who-L: USER\npassword-L: PW\n",
		"YAML lists":                  "- [USER, PW]\n",
		"YAML headers":                "- {name: hN, headers: {X-User: USER, X-Token: PW}}\n",
		"YAML list below comments":    "# for USER\n- name: nN\n  password: PW\n",
		"a script":                    "useradd USER\necho PW | passwd --stdin\n",
		"PHP":                         "$users['N']['name'] = 'USER';\n$users['N']['password'] = 'PW';\n",
		"JavaScript":                  "users.push({\n  who: 'USER',\n  password: 'PW',\n});\n",
	},
	"JSON": {
		"a list":            "{\"user\": \"USER\", \"token\": \"PW\"}",
		"a list of who":     "{\"who\": \"USER\", \"token\": \"PW\"}",
		"a list of lists":   "[\"USER\", \"PW\"]",
		"a list by numbers": "{\"id\": N, \"who\": \"USER\", \"token\": \"PW\"}",
	},
	"fields": {
		"by name":              "USER: PW",
		"by numbers":           "user-N: USER, password-N: PW",
		"of letters":           "user-L: USER, password-L: PW",
		"of letters of who":    "who-L: USER, password-L: PW",
		"of numbers of who":    "who-N: USER, password-N: PW",
		"letters only":         "who_L: USER, L: PW",
		"documents by letters": "L.yaml: \"who: USER\\npw: PW\\n\"",
		"documents by numbers": "N.conf: \"grantee USER\\npw PW\\n\"",
		"in base64":            "user-N: USER, password-N: \"BASE64\"",
		"URLs":                 "url-N: \"postgres://USER:PW@db/app\"",
	},
	"arguments": {
		"pairs":          "--user=USER, --token=PW",
		"pairs of who":   "--who=USER, --token=PW",
		"in one":         "--user=USER:PW",
		"flags":          "\"-u\", USER, \"-p\", PW",
		"of names":       "--USER-token=PW",
		"of X-User":      "\"-H\", \"X-User: USER\", \"-H\", \"Token: PW\"",
		"by numbers who": "--who-N=USER, --token-N=PW",
	},
	"environment": {
		"by name":           "{name: USER, value: PW}",
		"by numbers":        "{name: USER_N, value: USER}, {name: PASSWORD_N, value: PW}",
		"by letters of who": "{name: WHO_L, value: USER}, {name: PASSWORD_L, value: PW}",
		"of grantees":       "{name: nN, grantee: USER, value: PW}",
	},
	"objects": {
		"by name":           "metadata: {name: s-USER}\nstringData: {username: USER, password: PW}",
		"by numbers":        "metadata: {name: s-N}\nstringData: {username: USER, password: PW}",
		"by numbers of who": "metadata: {name: s-N}\nstringData: {what: USER, password: PW}",
		"by letters of who": "metadata: {name: s-L}\nstringData: {what: USER, password: PW}",
		"by letters":        "metadata: {name: s-L}\nstringData: {username: USER, password: PW}",
		"of labels":         "metadata: {name: s-L, labels: {owner: USER}}\nstringData: {password: PW}",
		"of annotations":    "metadata: {name: sN, annotations: {example.com/who: USER}}\nstringData: {password: PW}",
		"of texts":          "metadata: {name: s-L}\nstringData: {conf: \"for = USER\\npassword = PW\\n\"}",
	},
}

// wrappings are what a manifest has before and behind a list of entries, and between two of them.
var wrappings = map[string][3]string{
	"text":        {secret + "stringData:\n  file.conf: |\n", "\n", ""},
	"JSON":        {secret + "stringData:\n  file.json: '[", "]'\n", ", "},
	"fields":      {secret + "stringData: {", "}\n", ", "},
	"arguments":   {"apiVersion: example.com/v1\nkind: Runner\nmetadata: {name: d}\nspec: {containers: [{name: main, args: [", "]}]}\n", ", "},
	"environment": {"apiVersion: example.com/v1\nkind: Runner\nmetadata: {name: d}\nspec: {containers: [{name: main, env: [", "]}]}\n", ", "},
	"objects":     {"", "", ""},
}

// written is a list in a manifest, with the passwords in entries, and copies of them in another Secret.
func written(kind, entry string, list []person, copies string, passwords []string) string {
	var entries []string
	for i, p := range list {
		text := ofPerson(entry, p, i, passwords[i])
		if kind == "text" {
			text = "    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n"
		}
		if kind == "objects" {
			text = "---\napiVersion: v1\nkind: Secret\n" + text + "\n"
		}
		entries = append(entries, text)
	}
	w := wrappings[kind]
	out := w[0] + strings.Join(entries, w[2]) + w[1]
	other := "---\n" + strings.Replace(secret, "name: s", "name: copies", 1) + "stringData: {"
	switch copies {
	case "a nameless copy":
		out += other + "first: " + passwords[0] + "}\n"
	case "named copies":
		for i, p := range list {
			other += p.name + ": " + passwords[i] + ", "
		}
		out += other + "}\n"
	}
	return out
}

// ofPerson is an entry for a person.
func ofPerson(entry string, p person, at int, password string) string {
	number, letter := strconv.Itoa(at), string(rune('a'+at))
	pairs := []string{"CREATE USER USER", "CREATE USER " + p.name, "USER_N", "USER_" + number, "USER_L", "USER_" + letter, "USER_PASSWORD", p.name + "_PASSWORD", "USER_MAIL", p.name + "_MAIL"}
	for _, word := range []string{"PASSWORD", "Login", "GRANT", "ALTER", "ROLE"} { // which have letters with a meaning
		pairs = append(pairs, word, word)
	}
	pairs = append(pairs, "USER", p.name, "MAIL", p.mail, "N", number, "L", letter, "PW", password, "BASE64", encode64(password))
	return strings.NewReplacer(pairs...).Replace(entry)
}

// listEdits are lists before and after an edit.
var listEdits = func() map[string][2][]person {
	of := func(names string) (out []person) {
		for _, name := range strings.Fields(names) {
			name, mail, found := strings.Cut(name, "@")
			if !found {
				mail = name[:1]
			}
			out = append(out, person{name, mail + "@example.com"})
		}
		return out
	}
	out := map[string][2][]person{}
	for name, edit := range map[string][2]string{
		"unchanged": {"root bob eve", "root bob eve"}, "the only one": {"root", "mallory"}, "the only one's mail": {"root", "root@m"}, "the only one's name": {"root", "mallory@r"},
		"replaced first": {"root bob eve", "mallory bob eve"}, "replaced in the middle": {"root bob eve", "root mallory eve"}, "replaced last": {"root bob eve", "root bob mallory"},
		"all replaced": {"root bob", "mallory eve"}, "added first": {"root bob", "mallory root bob"}, "added in the middle": {"root bob", "root mallory bob"}, "added last": {"root bob", "root bob mallory"},
		"a second one": {"root", "root mallory"}, "a second one in front": {"root", "mallory root"}, "removed first": {"root bob eve", "bob eve"}, "removed in the middle": {"root bob eve", "root eve"},
		"removed last": {"root bob eve", "root bob"}, "one is left": {"root bob", "bob"}, "swapped": {"root bob", "bob root"}, "rotated": {"root bob eve", "eve root bob"}, "reversed": {"root bob eve carl", "carl eve bob root"},
		"names exchanged": {"root bob eve", "bob@r root@b eve"}, "another name": {"root bob eve", "root mallory@b eve"}, "another mail": {"root bob eve", "root bob@m eve"},
		"one removed, one added": {"root bob eve", "bob eve mallory"}, "replaced and rotated": {"root bob eve", "eve mallory bob"}, "replaced by a longer list": {"root", "mallory eve"}, "replaced by a shorter list": {"root bob", "mallory"},
	} {
		out[name] = [2][]person{of(edit[0]), of(edit[1])}
	}
	return out
}()

// manyAlike are the forms whose entries nothing tells apart, in which any edit renews all. In the others, an entry keeps its password, or if it
// has a number or a letter, keeps it as long as that is the same.
var manyAlike = []string{
	"PHP", "comments by numbers", "comments of many by numbers", "flags", "of X-User", "pairs", "pairs of who", "LDIF", "SQL in lines", "SQL of grants", "TOML branches", "XML by numbers",
	"XML of comments", "a script", "comments", "comments in blocks", "comments of C", "comments of C in blocks", "comments of C in lines", "comments of XML in lines",
	"documents", "documents of grantees", "pairs in blocks", "prose", "prose of sentences", "two comments", "two comments in blocks", "unknown pairs",
	"unknown pairs in blocks",
}

// TestNobodyGetsThePasswordOfAnother fails if in any form of list, and in any edit of it, somebody gets the password of another one, or
// somebody's password is renewed without a need.
func TestNobodyGetsThePasswordOfAnother(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for kind, entries := range entriesOf {
		for name, entry := range entries {
			for edit, lists := range listEdits {
				for _, copies := range []string{"", "a nameless copy", "named copies"} {
					isOften := slices.Contains([]string{"unchanged", "the only one", "one is left", "replaced first", "swapped"}, edit)
					if !isOften && (copies != "" || testing.Short()) {
						continue
					}
					row := fmt.Sprint(kind, ": ", name, ", ", edit, ", ", copies)
					was := freshPasswords(random, len(lists[0]))
					after := func() Revision {
						return Revision{Manifest: written(kind, entry, lists[1], copies, freshPasswords(random, len(lists[1])))}
					}
					result := Decide(Input{Release: "r", Namespace: "n", Rendered: after(), Rerendered: []Revision{after(), after()},
						Earlier:   []Revision{{Number: 1, Successful: true, Manifest: written(kind, entry, lists[0], copies, was)}},
						SameInput: edit == "unchanged", Now: time.Now})
					is := passwordsIn(result.Manifest)
					if len(is) < len(lists[1]) {
						t.Fatalf("%s: %d passwords of %d:\n%s", row, len(is), len(lists[1]), result.Manifest)
					}
					if strings.HasPrefix(entry, "USER: ") { // a map, which may be in the order that is recorded
						byName := passwordsByName(result.Manifest)
						for i, p := range lists[1] {
							is[i] = byName[p.name]
						}
					}
					for i, p := range lists[1] {
						owner := slices.Index(was, is[i])
						before := slices.IndexFunc(lists[0], func(other person) bool {
							return other.name == p.name && (other.mail == p.mail || !strings.Contains(entry, "MAIL"))
						})
						isNumbered := ofPerson(entry, p, 0, "") != ofPerson(entry, p, 1, "")
						switch {
						case owner >= 0 && owner != before:
							t.Errorf("%s: %s gets the password of %s:\n%s", row, p.name, lists[0][owner].name, result.lines())
						case owner >= 0 || before < 0:
						case edit == "unchanged", !slices.Contains(manyAlike, name) && copies != "a nameless copy" && (before == i || !isNumbered):
							t.Errorf("%s: the password of %s is renewed:\n%s", row, p.name, result.lines())
						}
					}
				}
			}
		}
	}
}

func freshPasswords(random *rand.Rand, n int) (out []string) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for range n {
		text := make([]byte, 18)
		for i := range text {
			text[i] = letters[random.IntN(len(letters))]
		}
		out = append(out, string(text))
	}
	return out
}

// passwordsByName are those of a map; if there are others with a name, the first one.
func passwordsByName(manifest string) map[string]string {
	out := map[string]string{}
	for _, m := range lazyregexp.New(`\b([a-z]+): (?:\{password: )?([A-Za-z0-9]{18})\b`)().FindAllStringSubmatch(manifest, -1) {
		if out[m[1]] == "" {
			out[m[1]] = m[2]
		}
	}
	return out
}

// passwordsIn are the passwords of a manifest, in its order.
func passwordsIn(manifest string) []string {
	plain := runs().ReplaceAllStringFunc(manifest, func(run string) string {
		if text, err := decode64(run); err == nil && isReadable([]byte(text)) {
			return text
		}
		return run
	})
	return lazyregexp.New(`\b[A-Za-z0-9]{18}\b`)().FindAllString(plain, -1)
}

// TestLongListsAreKept: an upgrade without changes keeps each of thousands of entries. If the work grew with the square of their number, it
// would take longer than go gives the tests.
func TestLongListsAreKept(t *testing.T) {
	t.Parallel()
	var list []person
	for i := range 3000 {
		name := "u" + strings.NewReplacer("0", "q", "1", "w", "2", "x", "3", "y", "4", "z", "5", "v", "6", "k", "7", "g", "8", "h", "9", "j").Replace(strconv.Itoa(i))
		list = append(list, person{name, name + "@example.com"})
	}
	for _, form := range []string{"XML", "Hadoop"} {
		was := freshPasswords(rand.New(rand.NewPCG(1, 3)), len(list))
		of := func(seed uint64) Revision {
			return Revision{Manifest: written("text", entriesOf["text"][form], list, "", freshPasswords(rand.New(rand.NewPCG(seed, 3)), len(list)))}
		}
		result := Decide(Input{Release: "r", Namespace: "n", Rendered: of(2), Rerendered: []Revision{of(3), of(4)}, SameInput: true,
			Earlier: []Revision{{Number: 1, Successful: true, Manifest: written("text", entriesOf["text"][form], list, "", was)}}, Now: time.Now})
		if !slices.Equal(passwordsIn(result.Manifest), was) {
			t.Errorf("%s: renewed without a change", form)
		}
	}
}
