package server_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

var namedByte = regexp.MustCompile(`\(byte (\d+)\)$`)

// malformedAt fails the test unless the answer refuses the body as a whole and names that byte of it.
func (r *response) malformedAt(at int) {
	r.t.Helper()
	r.invalid("")
	if named := namedByte.FindStringSubmatch(r.detail()); named == nil || named[1] != strconv.Itoa(at) {
		r.t.Errorf("%s: %q, want byte %d", r.what, r.detail(), at)
	}
}

func TestWhatIsNotOneJSONObjectIsRefusedByItsByte(t *testing.T) {
	onEachBodyEndpoint(t, func(c *client, e bodyEndpoint) {
		valid := string(mustEncode(e.valid))
		size := len(valid)
		for name, test := range map[string]struct {
			body raw
			at   int
		}{
			"trailing text":          {raw(valid + "x"), size},
			"text after a line":      {raw(valid + "\n\n{"), size + 2},
			"two objects":            {raw(valid + valid), size},
			"a byte order mark":      {raw("\xef\xbb\xbf" + valid), 0},
			"white space alone":      {" \n", 2},
			"cut off":                {raw(valid[:size-1]), size - 1},
			"an open brace":          {"{", 1},
			"a comma before the end": {raw(valid[:size-1] + ",}"), size - 1},
		} {
			c.t.Run(name, func(t *testing.T) { c.in(t).send(e, test.body).malformedAt(test.at) })
		}
	})
}

// badTexts are contents of JSON texts that no text may have, and where they go wrong.
var badTexts = map[string]struct {
	content string
	at      int
}{
	"not UTF-8":                   {"\xff", 0},
	"UTF-8 cut off":               {"é\xc3", 2},
	"overlong UTF-8":              {"\xc0\xaf", 0},
	"a surrogate in UTF-8":        {"\xed\xa0\x80", 0},
	"a raw control character":     {"a\nb", 1},
	"an unknown escape":           {`\x41`, 0},
	"a lone high surrogate":       {`ok\ud800`, 2},
	"a lone low surrogate":        {`\udc00`, 0},
	"a high surrogate and a text": {`\ud800\u0041`, 0},
	"surrogates the wrong way":    {`\udfff\ud800`, 0},
}

func TestTextThatIsNotUnicodeIsRefusedByItsByte(t *testing.T) {
	onEachBodyEndpoint(t, func(c *client, e bodyEndpoint) {
		for name, text := range badTexts {
			c.t.Run(name, func(t *testing.T) {
				asName := string(member(e.valid, "", 1))
				at := len(asName) - len(`":1}`)
				c.in(t).send(e, raw(asName[:at]+text.content+asName[at:])).malformedAt(at + text.at)
				for field, kind := range e.kinds {
					value, behind := any(""), `"}`
					if kind == anObject {
						value, behind = fields{"list": []any{fields{"k": ""}}}, `"}]}}`
					} else if kind != aText && kind != aUUID {
						continue
					}
					asValue := string(member(e.valid.without(field), field, value))
					at := len(asValue) - len(behind)
					c.in(t).send(e, raw(asValue[:at]+text.content+asValue[at:])).malformedAt(at + text.at)
				}
			})
		}
	})
}

// null must not pass for an empty object: where no field is required it would be a request to do the default.
func TestABodyThatIsNoObjectIsRefused(t *testing.T) {
	onEachBodyEndpoint(t, func(c *client, e bodyEndpoint) {
		for _, body := range []raw{"null", "true", "5", `"x"`, `""`, "[]", "[{}]", raw("[" + string(mustEncode(e.valid)) + "]")} {
			c.t.Run(string(body), func(t *testing.T) {
				if got := c.in(t).send(e, body).invalid("").detail(); !strings.HasPrefix(got, "the body must be a JSON object") {
					t.Errorf("detail %q", got)
				}
			})
		}
	})
}

func TestAFieldGivenTwiceIsRefusedByItsName(t *testing.T) {
	onEachBodyEndpoint(t, func(c *client, e bodyEndpoint) {
		for field, kind := range e.kinds {
			once := e.valid.with(fields{field: exampleOf[kind]})
			c.send(e, member(once, field, once[field])).invalid(field)
			c.send(e, member(once, field, raw("null"))).invalid(field)
			escaped := raw(strings.Replace(string(member(once, "@", once[field])), `"@"`, `"\u00`+strconv.FormatInt(int64(field[0]), 16)+field[1:]+`"`, 1))
			c.send(e, escaped).invalid(field)
			if kind == anObject {
				c.send(e, member(e.valid.without(field), field, raw(`{"k":1,"k":1}`))).invalid(field + ".k")
				c.send(e, member(e.valid.without(field), field, raw(`{"a":{"b":[0,{"k":1,"j":2,"k":3}]}}`))).invalid(field + ".a.b[1].k")
				c.send(e, member(e.valid.without(field), field, raw(`{"é":1,"\u00e9":2}`))).invalid(field + ".é")
			}
		}
	})
}

// exampleOf has a value that a field of each kind may have.
var exampleOf = map[kind]any{
	another: "x", aText: "x", aUUID: "018f4d5e-0000-7000-8000-000000000000", anInteger: 1, anAmount: 1, aBoolean: true,
	scopeList: list("read"), itemList: []fields{}, anObject: fields{}, knownFields: fields{},
}

func TestUnknownFieldsAndOtherSpellingsAreRefusedByTheirNames(t *testing.T) {
	onEachBodyEndpoint(t, func(c *client, e bodyEndpoint) {
		for _, unknown := range []string{"max_value", "id", "org_id", "status", "api_key", "__proto__", "ü", "metadata.x"} {
			c.send(e, member(e.valid, unknown, nil)).invalid(unknown)
			c.send(e, member(e.valid, unknown, 1)).invalid(unknown)
		}
		// One without a name has nothing to be named by, so the answer must at least not say that the body is no object.
		if got := c.send(e, member(e.valid, "", 1)).invalid("").detail(); !strings.Contains(got, "not a field") {
			c.t.Errorf("detail %q", got)
		}
		for field, kind := range e.kinds {
			for _, spelling := range []string{
				strings.ToUpper(field), titled(field), strings.ReplaceAll(titled(field), "_", ""), strings.ReplaceAll(field, "_", ""),
				field + " ", " " + field, field + "\u0000", field[:len(field)-1],
			} {
				if _, known := e.kinds[spelling]; !known {
					c.send(e, member(e.valid, spelling, exampleOf[kind])).invalid(spelling)
				}
			}
		}
	})
}

// titled returns a spelling that lenient decoders take for the field, as without underscores: Max_Actions and MaxActions.
func titled(field string) string {
	words := strings.Split(field, "_")
	for i, word := range words {
		words[i] = string(unicode.ToUpper(rune(word[0]))) + word[1:]
	}
	return strings.Join(words, "_")
}
