package run

import (
	"strconv"
	"strings"
	"testing"
)

// A screen understands as much of a terminal as the region needs: printing,
// wrapping, scrolling, and the few sequences that move and erase.
type screen struct {
	width, height int
	rows          [][]rune // all lines ever, the last height of them visible
	x, y          int
	t             testing.TB
}

func newScreen(t testing.TB, width, height int) *screen {
	return &screen{width: width, height: height, rows: [][]rune{nil}, t: t}
}

func (s *screen) Write(data []byte) (int, error) {
	text := []rune(string(data))
	for i := 0; i < len(text); i++ {
		switch r := text[i]; {
		case r == '\r':
			s.x = 0
		case r == '\n':
			s.x = 0
			s.down()
		case r == 0x1b:
			i = s.sequence(text, i)
		case r < 0x20:
			s.t.Errorf("control character %q", r)
		default:
			s.put(r)
		}
	}
	return len(data), nil
}

func (s *screen) down() {
	if s.y++; s.y == len(s.rows) {
		s.rows = append(s.rows, nil)
	}
}

func (s *screen) put(r rune) {
	if s.x == s.width {
		s.x = 0
		s.down()
	}
	row := s.rows[s.y]
	for len(row) <= s.x {
		row = append(row, ' ')
	}
	row[s.x] = r
	s.rows[s.y] = row
	s.x++
}

// sequence obeys ESC [ n X and returns where it ends.
func (s *screen) sequence(text []rune, i int) int {
	end := i + 2
	for end < len(text) && (text[end] < '@' || text[end] > '~') {
		end++
	}
	n, _ := strconv.Atoi(string(text[i+2 : end]))
	switch text[end] {
	case 'A':
		s.y -= n
		if top := max(0, len(s.rows)-s.height); s.y < top {
			s.t.Errorf("the cursor went above the screen")
			s.y = top
		}
	case 'J':
		s.rows[s.y] = s.rows[s.y][:min(s.x, len(s.rows[s.y]))]
		s.rows = s.rows[:s.y+1]
	case 'K':
		if n == 2 {
			s.rows[s.y] = nil
			break
		}
		s.rows[s.y] = s.rows[s.y][:min(s.x, len(s.rows[s.y]))]
	case 'm':
	default:
		s.t.Errorf("sequence %q", string(text[i:end+1]))
	}
	return end
}

func (s *screen) String() string {
	var b strings.Builder
	for _, row := range s.rows {
		b.WriteString(strings.TrimRight(string(row), " ") + "\n")
	}
	return b.String()
}

// region counts the lines from the header on.
func (s *screen) region() int {
	for i, row := range s.rows {
		if strings.HasPrefix(string(row), "▸") {
			return len(s.rows) - i
		}
	}
	return 0
}
