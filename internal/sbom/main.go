// Command sbom writes the bill of materials of a built program: CycloneDX 1.5 in
// JSON, from what Go has put into the binary (go version -m). It needs no network,
// and the same binary gives the same bytes.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY VERSION")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// The parts of https://cyclonedx.org/docs/1.5/json/ that we know something about.
type (
	document struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		PURL       string     `json:"purl,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
)

func write(out io.Writer, path, version string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading what %s was built from: %w", path, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(describe(info, filepath.Base(path), version, sha256.Sum256(data)))
}

// describe makes the document of a binary with that sum.
func describe(info *debug.BuildInfo, name, version string, sum [sha256.Size]byte) document {
	program := component{
		Type: "application", Ref: name, Name: name, Version: version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}},
	}
	for _, s := range info.Settings {
		if slices.Contains([]string{"CGO_ENABLED", "GOOS", "GOARCH", "GOAMD64", "GOARM64"}, s.Key) {
			program.Properties = append(program.Properties, property{"build:" + s.Key, s.Value})
		}
	}
	library := func(path, version string) component {
		purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
		return component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
	}
	components := []component{library("stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil && m.Replace.Version != "" { // a directory of ours is a part of that version
			m = m.Replace
		}
		c := library(m.Path, m.Version)
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}}
		}
		components = append(components, c)
	}
	top := dependency{Ref: name}
	all := []dependency{}
	for _, c := range components {
		top.DependsOn = append(top.DependsOn, c.Ref)
		all = append(all, dependency{Ref: c.Ref})
	}
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // RFC 9562, version 8
	return document{
		Format: "CycloneDX", Spec: "1.5", Version: 1,
		Serial:   fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]),
		Metadata: metadata{program}, Components: components, Dependencies: append([]dependency{top}, all...),
	}
}
