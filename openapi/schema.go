package openapi

import (
	"encoding/json"
	"slices"
	"strings"
)

// kind is what a schema allows, in words. ref names its component, if it is an object.
type kind struct{ text, ref string }

// kind describes what a schema allows.
func (r reader) kind(given object) kind {
	s, name := r.resolve(given)
	if name != "" && r.isObject(s) {
		return kind{text: name, ref: name}
	}
	if one := s.objects("allOf"); len(one) == 1 && len(s.object("properties").names) == 0 {
		taken := r.kind(one[0])
		if given.has("default") {
			taken.text += " (default " + compact(given.values["default"]) + ")"
		}
		return taken
	}
	if choices := s.objects("anyOf"); len(choices) > 0 {
		return kind{text: "one of several objects"}
	}
	if choices := s.objects("oneOf"); len(choices) > 0 {
		var texts []string
		for _, choice := range choices {
			texts = append(texts, r.kind(choice).text)
		}
		return kind{text: strings.Join(texts, " or ")}
	}
	if s.text("type") == "array" {
		of := r.kind(s.object("items"))
		return kind{text: strings.Join(slices.DeleteFunc([]string{bounds(s, "maxItems"), "array of", of.text}, isEmpty), " "), ref: of.ref}
	}
	words := []string{s.text("type")}
	switch {
	case s.has("const"):
		words = []string{compact(s.values["const"])}
	case s.has("enum"):
		words = []string{strings.Join(s.texts("enum"), " | ")}
	case s.text("format") == "uuid":
		words = []string{"UUID"}
	case s.text("format") == "date-time":
		words = []string{"time"}
	case s.text("type") == "string":
		words = append(words, bounds(s, "maxLength"))
	case s.has("minimum") || s.has("maximum"):
		words = append(words, interval(s))
	}
	if s.has("default") {
		words = append(words, "(default "+compact(s.values["default"])+")")
	} else if given.has("default") {
		words = append(words, "(default "+compact(given.values["default"])+")")
	}
	return kind{text: strings.Join(slices.DeleteFunc(words, isEmpty), " ")}
}

func isEmpty(text string) bool { return text == "" }

func bounds(s object, most string) string {
	if s.has(most) {
		return "≤ " + grouped(s.values[most])
	}
	return ""
}

func interval(s object) string {
	low, high := grouped(s.values["minimum"]), grouped(s.values["maximum"])
	switch {
	case high == "":
		return "≥ " + low
	case low == "":
		return "≤ " + high
	}
	return low + " to " + high
}

// grouped writes a number with commas between thousands.
func grouped(value any) string {
	number, _ := value.(json.Number)
	text := number.String()
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// isObject reports whether a schema describes objects with members of its own, not any object.
func (r reader) isObject(s object) bool {
	s, _ = r.resolve(s)
	if s.flag("additionalProperties") {
		return false
	}
	return s.text("type") == "object" || len(s.objects("anyOf")) > 0 && s.text("type") != "array"
}

// members returns the members of a schema, inherited members first.
func (r reader) members(s object) []field {
	s, _ = r.resolve(s)
	if s.text("type") == "array" {
		return r.members(s.object("items"))
	}
	var found []field
	for _, part := range s.objects("allOf") {
		found = append(found, r.members(part)...)
	}
	properties, required := s.object("properties"), s.texts("required")
	for _, name := range properties.names {
		f := r.field(name, properties.object(name), slices.Contains(required, name))
		at := slices.IndexFunc(found, func(known field) bool { return known.Name == name })
		if at < 0 {
			found = append(found, f)
			continue
		}
		f.Required = f.Required || found[at].Required
		found[at] = f
	}
	return found
}

func (r reader) field(name string, given object, required bool) field {
	s, _ := r.resolve(given)
	k := r.kind(given)
	description := given.text("description")
	if description == "" && k.ref == "" {
		description = s.text("description")
	}
	return field{Name: name, Kind: k.text, Ref: k.ref, Description: description, Required: required}
}
