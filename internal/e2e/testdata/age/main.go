// Command age is as much of the program of this name as the guides call, with its library:
// the whole program needs modules that deployer doesn't.
package main

import (
	"flag"
	"io"
	"log"
	"os"

	"filippo.io/age"
	"filippo.io/age/armor"
)

func main() {
	flag.Bool("encrypt", false, "encrypt, which is all that it can")
	to := flag.String("recipient", "", "public key")
	flag.Bool("armor", false, "as text, which is all that it writes")
	path := flag.String("output", "", "file to write")
	flag.Parse()
	if err := encrypt(flag.Arg(0), *path, *to); err != nil {
		log.Fatal(err)
	}
}

func encrypt(from, path, to string) error {
	recipient, err := age.ParseX25519Recipient(to)
	if err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	text := armor.NewWriter(out)
	plain, err := age.Encrypt(text, recipient)
	if err != nil {
		return err
	}
	if _, err := io.Copy(plain, in); err != nil {
		return err
	}
	for _, c := range []io.Closer{plain, text, out} {
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}
