package hide

import (
	"net/url"
	"strings"

	"deployer/internal/lazyregexp"
)

// addEmbedded adds the passwords in a text that stand where only a password does: in a URL, in a header,
// or after a key such as password=. The text itself needn't be confidential.
func (t *Texts) addEmbedded(text string) {
	if !strings.ContainsAny(text, ":=<") && !strings.Contains(text, "password ") {
		return
	}
	for _, place := range passwordPlaces {
		for _, m := range place().FindAllStringSubmatch(text, -1) {
			t.addPassword(m[1])
		}
	}
	for _, m := range basicAuth().FindAllStringSubmatch(text, -1) {
		t.addBasicAuth(m[1])
	}
	for _, pairs := range []lazyregexp.Regexp{pair, element} {
		for _, m := range pairs().FindAllStringSubmatch(text, -1) {
			if classifyKey(m[1]) == confidentialKey {
				t.addPassword(strings.Trim(m[2], `"'`))
			}
		}
	}
}

// addPassword adds a text that stands where only a password does, as it is and with the escapes of URLs
// decoded. Ordinary words aren't added: URLs in examples have them as passwords.
func (t *Texts) addPassword(text string) {
	plain, _ := url.PathUnescape(text) // empty when it isn't escaped properly
	for _, text := range []string{text, plain} {
		if len(text) >= minInside && !isOrdinary(text) {
			t.add(text, confidentialKey)
		}
	}
}

var (
	// passwordPlaces match a place where only a password stands, with the password as their group.
	passwordPlaces = []lazyregexp.Regexp{
		lazyregexp.New(`://[^\s/"'@:<>]*:([^\s"'<>]+)@`),   // https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1
		lazyregexp.New(`(?i)\bbearer\s+([\w\-.~+/=]+)`),    // https://www.rfc-editor.org/rfc/rfc6750#section-2.1
		lazyregexp.New(`\blogin\s+\S+\s+password\s+(\S+)`), // https://www.gnu.org/software/inetutils/manual/html_node/The-_002enetrc-file.html
	}
	// basicAuth matches user:password in base64: https://www.rfc-editor.org/rfc/rfc7617#section-2
	basicAuth = lazyregexp.New(`(?i)\bbasic\s+([\w+/]{4,}=*)`)
	// pair matches key=value or key: value inside a line: queries of URLs, connection strings.
	pair = lazyregexp.New(`([A-Za-z_][\w.\- ]*?)["']?[ \t]*[=:][ \t]*("[^"\n]+"|'[^'\n]+'|[^\s"'&;,<>{}\[\]]+)`)
	// element matches an element of XML.
	element = lazyregexp.New(`<([\w.:\-]+)[^<>]*>([^<>\n]+)</`)
)
