package main

import (
	"path/filepath"
	"strings"
)

// isCalledHelm reports whether the program was started under the name helm, by a
// link or a copy, and therefore has Helm's defaults and texts.
func isCalledHelm(program string) bool { return baseName(program) == "helm" }

// baseName is the name of a program without its directory, and without .exe.
func baseName(program string) string {
	return strings.TrimSuffix(filepath.Base(filepath.ToSlash(program)), ".exe")
}

// programName is the name by which hints call the program.
func programName(program string) string {
	if isCalledHelm(program) {
		return "helm"
	}
	return "deployer"
}

// waitsByDefault is what --wait means when it isn't given. Helm's users wait
// only when they say so; deployer sees a release through.
func (c call) waitsByDefault() bool { return !c.asHelm }
