package redisproc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	appendDir    = "appendonlydir"                        // in the data directory
	manifestFile = appendDir + "/appendonly.aof.manifest" // names the files; the last of type i is appended to

	aofBuffer = 1 << 20
	// longestName is more than the names of MULTI and EXEC have. Longer words are skipped unread.
	longestName = 8
)

// cutTornTransaction removes an incomplete transaction from the end of what a
// server has appended in dir, as a power failure can leave it.
//
// Redis writes what a script changes as a transaction, from MULTI to EXEC. It loads
// a file that ends within one, and ignores that one. But when the file ends within a
// command of it, Redis leaves the MULTI and the commands before that command in the
// file, and appends to them what comes next; see
// https://github.com/valkey-io/valkey/pull/4342. The start after that takes all of it
// for one transaction: it carries out what was ignored, and loses what was
// acknowledged if no EXEC follows.
func cutTornTransaction(dir string) error {
	path, err := appendedFile(dir)
	if path == "" || err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // Redis will say so
	}
	if err != nil {
		return fmt.Errorf("redisproc: append-only file: %w", err)
	}
	defer file.Close()
	if begins, is := tornTransaction(file); is {
		if err = file.Truncate(begins); err == nil {
			err = file.Sync()
		}
	}
	if err != nil {
		return fmt.Errorf("redisproc: incomplete transaction in the append-only file: %w", err)
	}
	return nil
}

// appendedFile returns the path of the file that the next server in dir will append
// to, "" when there is none yet.
func appendedFile(dir string) (path string, err error) {
	manifest, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("redisproc: append-only file: %w", err)
	}
	for line := range strings.Lines(string(manifest)) {
		words := strings.Fields(line) // file <name> seq <number> type <b, h or i>
		if len(words) == 6 && words[5] == "i" {
			path = filepath.Join(dir, appendDir, words[1])
		}
	}
	return path, nil
}

// tornTransaction returns where the transaction begins within which an append-only
// file ends, and false when it ends otherwise, or is damaged: Redis does not start on
// a file that is.
func tornTransaction(file io.Reader) (begins int64, is bool) {
	r := aofReader{in: bufio.NewReaderSize(file, aofBuffer)}
	for {
		at := r.read
		switch name, err := r.command(); {
		case err == io.EOF:
			return begins, is
		case err != nil:
			return 0, false
		case strings.EqualFold(name, "MULTI"):
			begins, is = at, true
		case strings.EqualFold(name, "EXEC"):
			is = false
		}
	}
}

var errNoCommand = errors.New("redisproc: no command")

// aofReader reads the commands of an append-only file.
type aofReader struct {
	in   *bufio.Reader
	read int64 // bytes
}

// command reads a command and returns its name, "" for a long one or an annotation.
// The error is io.EOF when the file ends before the command does.
func (r *aofReader) command() (name string, err error) {
	line, err := r.line()
	if err != nil || line[0] == '#' {
		return "", err
	}
	words, err := numberIn(line, '*')
	for word := 0; word < words && err == nil; word++ {
		var text string
		if text, err = r.word(); word == 0 {
			name = text
		}
	}
	return name, err
}

// word reads a word of a command. It returns only short ones.
func (r *aofReader) word() (text string, err error) {
	line, err := r.line()
	if err != nil {
		return "", err
	}
	size, err := numberIn(line, '$')
	if err != nil {
		return "", err
	}
	if size <= longestName {
		start, _ := r.in.Peek(size) // Discard reports what is missing
		text = string(start)
	}
	skipped, err := r.in.Discard(size + len("\r\n"))
	r.read += int64(skipped)
	return text, err
}

// line reads a line and returns it without its end. It has at least one byte.
func (r *aofReader) line() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	r.read += int64(len(line))
	if line = bytes.TrimRight(line, "\r\n"); err == nil && len(line) == 0 {
		err = errNoCommand
	}
	return line, err
}

// numberIn returns the number that a line has behind its first byte.
func numberIn(line []byte, first byte) (int, error) {
	number, err := strconv.Atoi(string(line[1:]))
	if err != nil || line[0] != first || number < 0 {
		return 0, errNoCommand
	}
	return number, nil
}
