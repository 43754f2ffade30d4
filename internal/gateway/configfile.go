package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// decoder reads a file of YAML strictly: every member is known, given once, and within its bounds. It goes on after a fault, so that
// its errors name all.
type decoder struct {
	file   string
	faults []error
}

// node is a value in the file, with the path of members that leads to it.
type node struct {
	*yaml.Node
	path string
}

// document returns the only document of the file, nil if there is a fault.
func (d *decoder) document(text []byte) *node {
	documents := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	switch err := documents.Decode(&first); {
	case err == io.EOF:
		d.fault(1, "", "is empty")
		return nil
	case err != nil:
		d.faults = append(d.faults, fmt.Errorf("%s: %s", d.file, withoutText(err)))
		return nil
	}
	if err := documents.Decode(&second); err != io.EOF {
		d.fault(max(second.Line, 1), "", "must be one document")
		return nil
	}
	return &node{first.Content[0], ""}
}

// withoutText returns where YAML is malformed. The library quotes the file, where an operator may have written a key.
func withoutText(err error) string {
	if line := lineOf.FindString(err.Error()); line != "" {
		return "is no YAML: " + line
	}
	return "is no YAML"
}

var lineOf = regexp.MustCompile(`line [0-9]+`)

func (d *decoder) fault(line int, path, reason string) {
	where := d.file + ":" + strconv.Itoa(line) + ": "
	if path != "" {
		where += path + " "
	}
	d.faults = append(d.faults, errors.New(where+reason))
}

func (d *decoder) faultAt(n node, reason string) { d.fault(n.Line, n.path, reason) }

// mapping reads a mapping by its members' names.
func (d *decoder) mapping(at node, required []string, fields map[string]func(node)) {
	if at.Kind != yaml.MappingNode {
		d.faultAt(at, "must be a mapping")
		return
	}
	given := map[string]bool{}
	for i := 0; i < len(at.Content); i += 2 {
		name, value := at.Content[i], at.Content[i+1]
		path := join(at.path, name.Value)
		read, known := fields[name.Value]
		switch {
		case name.Kind != yaml.ScalarNode || !known:
			d.fault(name.Line, path, "is no field that is known here")
		case given[name.Value]:
			d.fault(name.Line, path, "is given twice")
		default:
			read(node{value, path})
		}
		given[name.Value] = true
	}
	for _, name := range required {
		if !given[name] {
			d.fault(at.Line, join(at.path, name), "is missing")
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// has reports whether the node is a mapping.
func (n node) has() bool { return n.Kind == yaml.MappingNode }

// line returns where a member of a mapping stands, or else the mapping.
func (n node) line(member string) int {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if n.Content[i].Value == member {
			return n.Content[i].Line
		}
	}
	return n.Line
}

func (d *decoder) list(at node, least, most int) (items []node) {
	if at.Kind != yaml.SequenceNode || len(at.Content) < least || len(at.Content) > most {
		d.faultAt(at, fmt.Sprintf("must be a list of %d to %d items", least, most))
		return nil
	}
	for i, item := range at.Content {
		items = append(items, node{item, at.path + "[" + strconv.Itoa(i) + "]"})
	}
	return items
}

func (d *decoder) text(at node) string {
	if at.Kind != yaml.ScalarNode || at.Tag != "!!str" || strings.TrimSpace(at.Value) != at.Value || at.Value == "" {
		d.faultAt(at, "must be a text, without white space around it")
		return ""
	}
	return at.Value
}

func (d *decoder) matching(at node, pattern *regexp.Regexp, reason string) string {
	if at.Kind == yaml.ScalarNode && (at.Tag == "!!str" || at.Tag == "!!int") && pattern.MatchString(at.Value) {
		return at.Value
	}
	d.faultAt(at, reason)
	return ""
}

func (d *decoder) integer(at node, least, most int64) int64 {
	n, err := strconv.ParseInt(at.Value, 10, 64)
	if at.Kind != yaml.ScalarNode || at.Tag != "!!int" || err != nil || n < least || n > most {
		d.faultAt(at, fmt.Sprintf("must be an integer from %d to %d", least, most))
	}
	return n
}

func (d *decoder) seconds(at node, least, most int64) time.Duration {
	return time.Duration(d.integer(at, least, most)) * time.Second
}

func (d *decoder) address(at node) string {
	text := d.text(at)
	if _, port, err := net.SplitHostPort(text); err != nil || port == "" {
		d.faultAt(at, "must be host:port")
	}
	return text
}

// pathOf returns the path of a file, which the folder of the config begins unless it is absolute.
func (d *decoder) pathOf(at node, folder string) string {
	text := d.text(at)
	if text == "" || filepath.IsAbs(text) {
		return text
	}
	return filepath.Join(folder, text)
}
