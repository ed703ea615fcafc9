package run

import (
	"encoding/xml"
	"fmt"
	"strings"

	"deployer/internal/view/textfmt"
)

// The JUnit report has one test case for each object of the run, so that CI
// systems list what failed. https://github.com/testmoapp/junitxml
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Errors    int         `xml:"errors,attr"`
		Skipped   int         `xml:"skipped,attr"`
		Time      float64     `xml:"time,attr"`
		Timestamp string      `xml:"timestamp,attr"`
		Cases     []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string     `xml:"classname,attr"`
		Name    string     `xml:"name,attr"`
		Time    float64    `xml:"time,attr"`
		Failure *junitNote `xml:"failure"`
		Error   *junitNote `xml:"error"`
		Skipped *junitNote `xml:"skipped"`
	}
	junitNote struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes r to a file as a JUnit report: a failure for each object
// with a cause, an error for a failure that is no object's, skipped for what was
// not ready when the run ended. As writeResult it replaces the file in one step.
func writeJUnit(path string, r Result) error {
	data, err := xml.MarshalIndent(junitOf(r), "", "  ")
	if err != nil {
		return err
	}
	return writeOutcomeFile(path, []byte(xml.Header+string(data)+"\n"))
}

func junitOf(r Result) junitSuites {
	suite := junitSuite{Name: strings.Trim(fmt.Sprintf("%s %s/%s", r.Verb, r.Namespace, r.Release), " /"), Time: r.Seconds, Timestamp: r.Began}
	causes := map[string]Cause{}
	for _, c := range r.Causes {
		for _, o := range c.Objects.Names() {
			if _, named := causes[o]; !named {
				causes[o] = c
			}
		}
	}
	note := func(c Cause) *junitNote {
		return &junitNote{Message: c.summary(), Type: string(c.Class), Text: c.text(textfmt.ASCIIGlyphs)}
	}
	for _, o := range r.Objects {
		test := junitCase{Class: suite.Name, Name: o.Object, Time: o.Seconds}
		cause, failed := causes[o.Object]
		delete(causes, o.Object)
		switch {
		case failed:
			test.Failure = note(cause)
			suite.Failures++
		case o.isUnfinished():
			test.Skipped = &junitNote{Message: "not ready when the run ended: " + o.Message}
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, test)
	}
	for _, c := range r.Causes { // hooks, and failures that are no object's
		name := "run"
		if len(c.Objects) > 0 {
			name = c.Objects[0].String()
			if _, left := causes[name]; !left {
				continue
			}
		}
		suite.Cases = append(suite.Cases, junitCase{Class: suite.Name, Name: name, Error: note(c)})
		suite.Errors++
	}
	suite.Tests = len(suite.Cases)
	return junitSuites{Suite: suite}
}
