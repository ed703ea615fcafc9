package hide

import "io"

// Writer hands on what is written to it without what is confidential. Each
// write has to be of whole lines or documents.
func (t *Texts) Writer(to io.Writer) io.Writer {
	if t == nil {
		return to
	}
	return writer{t, to}
}

type writer struct {
	texts *Texts
	to    io.Writer
}

func (w writer) Write(data []byte) (int, error) {
	if _, err := io.WriteString(w.to, w.texts.Hide(string(data))); err != nil {
		return 0, err
	}
	return len(data), nil
}
