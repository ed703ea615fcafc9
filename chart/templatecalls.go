package chart

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/util/sets"

	"deployer/internal/lazyregexp"
)

// Template functions whose result may differ between renderings of the same input.
// https://masterminds.github.io/sprig/
var (
	randomFunctions = []string{
		"randAlphaNum", "randAlpha", "randAscii", "randBytes", "uuidv4", "bcrypt", "htpasswd", "encryptAES", "genPrivateKey",
		"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "now", "ago",
	}
	// fewResultsFunctions choose from few results, so that the same one may come out several times. keys and values give the
	// entries of a map in random order.
	fewResultsFunctions = []string{"randNumeric", "randInt", "shuffle", "keys", "values", "getHostByName"}
	// keyFunctions take longer than all else in a chart: they search for prime numbers.
	keyFunctions  = []string{"genPrivateKey", "genCA", "genSelfSignedCert", "genSignedCert"}
	hashFunctions = []string{"sha1sum", "sha256sum", "sha512sum", "adler32sum"}
	// contentFunctions give what other templates, values or files of the chart say.
	contentFunctions = []string{"include", "tpl", "toYaml", "toJson", "toPrettyJson", "Files"}
)

// TemplateCalls are the functions that the templates of a chart call, also in branches that aren't taken. They are read by Go's
// own parser of templates; the templates aren't changed.
type TemplateCalls struct {
	functions    sets.Set[string]
	shortRandom  bool // something random has up to three characters
	hashes       map[string]hashedContent
	postRenderer bool
}

// hashedContent says what the value of a key is the hash of.
type hashedContent struct {
	isContent bool     // what the chart renders
	templates []string // the templates that are named
}

// TemplateCalls reads the templates of the chart, and the values and files that may be templates for tpl.
func (c *Chart) TemplateCalls(in Input) *TemplateCalls {
	calls := &TemplateCalls{functions: sets.Set[string]{}, hashes: map[string]hashedContent{}, postRenderer: len(in.PostRenderer) > 0}
	for _, part := range allCharts(c.Helm) {
		for _, file := range part.Templates {
			calls.read(file.Data, "")
		}
	}
	if calls.functions.Has("tpl") {
		for _, part := range allCharts(c.Helm) {
			calls.readValues(part.Values, "")
			for _, file := range part.Files {
				calls.read(file.Data, "")
			}
		}
		calls.readValues(in.Values, "")
	}
	return calls
}

// MayDiffer reports whether two renderings of the same input may differ.
func (c *TemplateCalls) MayDiffer() bool {
	return c.postRenderer || c.functions.HasAny(randomFunctions...) || c.functions.HasAny(fewResultsFunctions...)
}

// MayComeOutAgain reports whether something random has so few results, or such short parts between punctuation, that it may be the
// same in two renderings.
func (c *TemplateCalls) MayComeOutAgain() bool {
	return c.shortRandom || c.functions.Has("randAscii") || c.functions.HasAny(fewResultsFunctions...)
}

// UseTime reports whether the time is called for.
func (c *TemplateCalls) UseTime() bool { return c.functions.HasAny("now", "ago") }

// MakeKeys reports whether private keys are made, so that rendering may take seconds.
func (c *TemplateCalls) MakeKeys() bool { return c.functions.HasAny(keyFunctions...) }

// Encrypt reports whether something is encrypted.
func (c *TemplateCalls) Encrypt() bool { return c.functions.Has("encryptAES") }

// HashOfContent reports whether the value of a key is a hash of what the chart renders, and not of something random, and names
// the templates that it is made of, if they are known. For a key that no template has in front of a hash, it depends on hashes
// whose key isn't known.
func (c *TemplateCalls) HashOfContent(key string) (templates []string, ok bool) {
	hashed, known := c.hashes[key]
	if !known {
		hashed = c.hashes[""]
	}
	return hashed.templates, hashed.isContent
}

func (c *TemplateCalls) readValues(value any, key string) {
	switch v := value.(type) {
	case string:
		c.read([]byte(v), key)
	case map[string]any:
		for key, item := range v {
			c.readValues(item, key)
		}
	case []any:
		for _, item := range v {
			c.readValues(item, key)
		}
	}
}

// read reads a text that may be a template. key is that of a value.
func (c *TemplateCalls) read(text []byte, key string) {
	of := slices.Concat(randomFunctions, fewResultsFunctions, hashFunctions, []string{"tpl"})
	if !containsAny(text, "{{") || !containsAny(text, of...) {
		return // most files are large and have none: they aren't parsed
	}
	trees := map[string]*parse.Tree{}
	tree := parse.New("text")
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(string(text), "", "", trees); err != nil {
		for _, name := range of { // the engine may get further than the parser here
			if containsAny(text, name) {
				c.functions.Insert(name)
			}
		}
		return
	}
	for _, tree := range trees {
		c.readList(tree.Root, key)
	}
}

// keyInFront matches the key in front of an action.
var keyInFront = lazyregexp.New(`([\w./-]+)["']?:\s*["']?$`)

func (c *TemplateCalls) readList(list *parse.ListNode, key string) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			key = ""
			if m := keyInFront().FindSubmatch(n.Text); m != nil {
				key = string(m[1])
			}
			continue
		case *parse.ActionNode:
			c.readPipe(n.Pipe, key)
		case *parse.TemplateNode:
			c.readPipe(n.Pipe, key)
		case *parse.IfNode:
			c.readBranch(&n.BranchNode, key)
		case *parse.RangeNode:
			c.readBranch(&n.BranchNode, key)
		case *parse.WithNode:
			c.readBranch(&n.BranchNode, key)
		}
		key = ""
	}
}

func (c *TemplateCalls) readBranch(n *parse.BranchNode, key string) {
	c.readPipe(n.Pipe, "")
	c.readList(n.List, key)
	c.readList(n.ElseList, key)
}

// readPipe reads a pipeline, whose result is the value of a key if that isn't empty.
func (c *TemplateCalls) readPipe(pipe *parse.PipeNode, key string) {
	if pipe == nil {
		return
	}
	p := pipeline{words: sets.Set[string]{}}
	p.add(pipe)
	c.functions = c.functions.Union(p.words)
	c.shortRandom = c.shortRandom || p.hasShortNumber && p.words.HasAny("randAlphaNum", "randAlpha", "randAscii", "randBytes", "uuidv4")
	var templates []string
	for _, text := range p.texts {
		c.read([]byte(text), "")
		if strings.HasSuffix(text, ".yaml") || strings.HasSuffix(text, ".yml") {
			templates = append(templates, text)
		}
	}
	if !p.words.HasAny(hashFunctions...) {
		return
	}
	isContent := p.words.HasAny(contentFunctions...)
	before, known := c.hashes[key]
	if known && (before.isContent != isContent || len(before.templates) == 0) {
		templates = nil
	}
	c.hashes[key] = hashedContent{isContent && (!known || before.isContent), append(templates, before.templates...)}
}

// A pipeline is what a pipeline, and those in its parentheses, consist of.
type pipeline struct {
	words          sets.Set[string] // functions and fields
	texts          []string
	hasShortNumber bool
}

func (p *pipeline) add(n parse.Node) {
	switch n := n.(type) {
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			for _, argument := range command.Args {
				p.add(argument)
			}
		}
	case *parse.ChainNode:
		p.words.Insert(n.Field...)
		p.add(n.Node)
	case *parse.FieldNode:
		p.addField(n.Ident)
	case *parse.VariableNode:
		p.addField(n.Ident)
	case *parse.IdentifierNode:
		p.words.Insert(n.Ident)
	case *parse.StringNode:
		p.texts = append(p.texts, n.Text)
	case *parse.NumberNode:
		length, err := strconv.Atoi(n.Text)
		p.hasShortNumber = p.hasShortNumber || err == nil && length > 0 && length <= 3
	}
}

// addField adds a field that gives content: .Files.
func (p *pipeline) addField(names []string) {
	if slices.Contains(names, "Files") {
		p.words.Insert("Files")
	}
}

// RenderAgain renders the chart again with the same input, as another run would. It reads the cluster as Render does.
func (c *Chart) RenderAgain(ctx context.Context, in Input) (*Rendered, error) {
	in.WhileRendering, in.SkipSchema = nil, true // the first rendering does both
	return c.Render(ctx, in)
}
