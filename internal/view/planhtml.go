package view

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"deployer/apply"
	"deployer/internal/view/textfmt"
)

//go:embed plan.html
var planPage string

// A page is what the HTML of a plan is made of.
type page struct {
	Title, Conclusion string
	Counts            []pageCount
	Warnings          []string
	Steps             []pageStep
	Stages            []pageStage
	Open              bool // the objects are unfolded at first
}

type pageCount struct {
	N            int
	Action, Word string
}

// A pageStep is a box in the picture of the order of work.
type pageStep struct {
	Title string
	Lines []pageStepLine
}

type pageStepLine struct {
	boxLine
	Anchor string // where the object is told of; empty for what isn't one object
}

type pageStage struct {
	Title   string
	Objects []pageObject
}

type pageObject struct {
	Sign, Name, Words, Source, Action, Anchor string
	Lines                                     []pageLine
}

type pageLine struct{ Class, Sign, Text string }

// unfolded is up to how many objects with something below them are shown
// unfolded at first: more are easier to look through folded.
const unfolded = 40

// planHTML writes a plan as one page that needs nothing else. All text in it is
// escaped by html/template.
func planHTML(w io.Writer, d planDocument, o PlanOptions) error {
	p := page{Title: d.title(), Conclusion: d.conclusion(), Counts: d.Summary.counts(), Warnings: told(d.Warnings), Steps: d.steps()}
	folding := 0
	for i, stage := range d.Stages {
		if len(stage.Objects) == 0 {
			continue
		}
		s := pageStage{Title: textfmt.Line(stage.Name)}
		for j, object := range stage.Objects {
			out := pageObjectOf(object.Action, object.heading(), object.details(o, true))
			out.Anchor = anchor(i, j)
			if len(out.Lines) > 0 {
				folding++
			}
			s.Objects = append(s.Objects, out)
		}
		p.Stages = append(p.Stages, s)
	}
	p.Open = folding <= unfolded
	return p.write(w)
}

func (p page) write(w io.Writer) error {
	t, err := template.New("plan").Parse(planPage)
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}

// anchor names an object within the page.
func anchor(stage, object int) string { return fmt.Sprintf("o%d-%d", stage, object) }

// counts are the numbers at the head of the page, without those that are zero.
func (s planSummary) counts() []pageCount {
	var out []pageCount
	for _, c := range []pageCount{
		{s.Create, string(apply.Create), "to create"}, {s.Update, string(apply.Update), "to update"},
		{s.Recreate, string(apply.Recreate), "to recreate"}, {s.Delete, string(apply.Delete), "to delete"}, {s.GiveBack, string(apply.GiveBack), "to give back"},
		{s.Hooks, "hook", "hooks"}, {s.Keep, string(apply.Keep), "kept"}, {s.Unchanged, string(apply.None), "unchanged"},
	} {
		if c.N > 0 {
			out = append(out, c)
		}
	}
	return out
}

// steps are the boxes of the plan, with links to what they name.
func (d planDocument) steps() []pageStep {
	var out []pageStep
	for i, b := range d.boxes() {
		step := pageStep{Title: textfmt.Line(b.Title)}
		for _, l := range b.Lines {
			row := pageStepLine{boxLine: l}
			if l.Sign != " " {
				row.Anchor = anchor(i, l.at)
			}
			step.Lines = append(step.Lines, row)
		}
		out = append(out, step)
	}
	return out
}

// classes name the lines of a plan for the style sheet.
var classes = map[byte]string{'+': "added", '-': "removed", '~': "changed", '?': "remark", ' ': "context"}

func pageObjectOf(action string, h heading, lines []planLine) pageObject {
	out := pageObject{Sign: string(h.sign), Name: h.name, Words: h.words, Source: h.source, Action: action}
	for _, l := range lines {
		sign := string(l.Sign)
		if l.Sign == '?' {
			sign = " "
		}
		out.Lines = append(out.Lines, pageLine{Class: classes[l.Sign], Sign: sign, Text: l.Text})
	}
	return out
}
