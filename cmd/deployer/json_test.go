package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// jsonMain is the command json of scripts: it reads JSON documents, one per
// line, and writes of each one line: what it has at the given paths, such as
// info.status or 0.name, as "path=value". The path "keys" gives the names of
// its fields. A line that is no JSON is an error.
func jsonMain() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var document any
		if err := json.Unmarshal(lines.Bytes(), &document); err != nil {
			fmt.Fprintf(os.Stderr, "%q: %v\n", lines.Text(), err)
			os.Exit(1)
		}
		var words []string
		for _, path := range os.Args[1:] {
			value, err := json.Marshal(at(document, path)) // a map's keys are sorted
			if err != nil {
				panic(err)
			}
			words = append(words, path+"="+string(value))
		}
		fmt.Println(strings.Join(words, " "))
	}
}

func at(document any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch d := document.(type) {
		case map[string]any:
			if key == "keys" {
				names := map[string]bool{}
				for name := range d {
					names[name] = true
				}
				return names
			}
			document = d[key]
		case []any:
			if key == "length" {
				return len(d)
			}
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(d) {
				return nil
			}
			document = d[i]
		default:
			return nil
		}
	}
	return document
}
