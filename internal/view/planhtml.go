package view

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed plan.html
var planPage string

// A page is what the HTML of a plan is made of.
type page struct {
	Title, Conclusion string
	Warnings          []string
	Picture           picture
	Objects           []pageObject
}

type pageObject struct {
	Sign, Name, Words, Source, Stage, Action string
	Lines                                    []pageLine
}

type pageLine struct{ Class, Sign, Text string }

// A picture is the layout of the order of work, in pixels.
type picture struct {
	Width, Height int
	Boxes         []pictureBox
}

type pictureBox struct {
	box
	X, Y, Width, Height int
	ArrowX, ArrowY      int // where the arrow to this box begins
	First               bool
	Rows                []pictureRow
}

type pictureRow struct {
	boxLine
	X, Y int
}

// planHTML writes a plan as one page that needs nothing else. All text in it is
// escaped by html/template.
func planHTML(w io.Writer, d planDocument, o PlanOptions) error {
	t, err := template.New("plan").Parse(planPage)
	if err != nil {
		return err
	}
	p := page{Title: d.title(), Conclusion: d.conclusion(), Picture: draw(d.boxes())}
	p.Warnings = told(d.Warnings)
	for _, stage := range d.Stages {
		for _, object := range stage.Objects {
			p.Objects = append(p.Objects, pageObjectOf(stage, object, object.details(o, true)))
		}
	}
	return t.Execute(w, p)
}

// classes name the lines of a plan for the style sheet.
var classes = map[byte]string{'+': "added", '-': "removed", '~': "changed", '?': "remark", ' ': "context"}

func pageObjectOf(stage planStage, o planObject, lines []planLine) pageObject {
	name, words := o.headline()
	out := pageObject{
		Sign: string(o.sign()), Name: name, Words: words, Source: line(o.Source), Stage: line(stage.Name), Action: o.Action,
	}
	for _, l := range lines {
		sign := string(l.Sign)
		if l.Sign == '?' {
			sign = " "
		}
		out.Lines = append(out.Lines, pageLine{Class: classes[l.Sign], Sign: sign, Text: l.Text})
	}
	return out
}

// Sizes of the picture, in pixels; text is set in a monospaced font of 12
// pixels, whose characters are a little over 7 wide.
const (
	boxGap, boxPad  = 40, 12
	rowHeight, cell = 18, 7.3
	boxMinimum      = 130
)

// draw places the stages from left to right.
func draw(boxes []box) picture {
	p := picture{Width: boxPad, Height: 0}
	x := boxPad
	for i, b := range boxes {
		longest := len(b.Title)
		for _, l := range b.Lines {
			longest = max(longest, width(l.Text)+2)
		}
		out := pictureBox{
			box: b, X: x, Y: boxPad, First: i == 0, ArrowX: x - boxGap, ArrowY: boxPad + rowHeight,
			Width: max(boxMinimum, int(float64(longest)*cell)+2*boxPad), Height: (len(b.Lines)+1)*rowHeight + 2*boxPad,
		}
		for j, l := range b.Lines {
			out.Rows = append(out.Rows, pictureRow{boxLine: l, X: x + boxPad, Y: boxPad + (j+2)*rowHeight + 4})
		}
		p.Boxes = append(p.Boxes, out)
		p.Width = x + out.Width + boxPad
		p.Height = max(p.Height, out.Height+2*boxPad)
		x += out.Width + boxGap
	}
	return p
}

// TitleX and TitleY are where the heading of a box stands.
func (b pictureBox) TitleX() int { return b.X + boxPad }

// TitleY is explained at TitleX.
func (b pictureBox) TitleY() int { return b.Y + rowHeight }

// Tip is where the arrow to the box ends.
func (b pictureBox) Tip() int { return b.X - 6 }
