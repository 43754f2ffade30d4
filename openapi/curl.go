package openapi

import (
	"net/url"
	"strings"
)

// flags are how curl shows a credential; they read it from the environment.
var flags = map[string]string{
	"apiKey":         `-H "X-API-Key: $KEY"`,
	"accessToken":    `-H "Authorization: Bearer $TOKEN"`,
	"clientBasic":    `-u "$AGENT:$SECRET"`,
	"bootstrapToken": `-H "Authorization: Bearer $BOOTSTRAP_TOKEN"`,
}

// curl returns a command that carries the operation out. Parameters with an example are in it.
func curl(op operation, parameters []object, o object) string {
	path, query, words := op.Path, url.Values{}, []string{}
	for _, p := range parameters {
		if !p.has("example") {
			continue
		}
		name, value := p.text("name"), strings.Trim(compact(p.values["example"]), `"`)
		switch p.text("in") {
		case "path":
			path = strings.Replace(path, "{"+name+"}", value, 1)
		case "query":
			query.Set(name, value)
		case "header":
			words = append(words, "-H '"+name+": "+value+"'")
		}
	}
	target := "$URL" + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	command := []string{`curl "` + target + `"`}
	if op.Method != "GET" && (op.Method != "POST" || op.Request == nil) {
		command[0] = "curl -X " + op.Method + ` "` + target + `"`
	}
	command = append(command, flags[op.Credentials[0]])
	command = append(command, words...)
	command = append(command, bodyWords(o.object("requestBody").object("content"))...)
	return strings.Join(without(command, ""), " \\\n  ")
}

func bodyWords(contents object) []string {
	if form := contents.object("application/x-www-form-urlencoded").object("example"); len(form.names) > 0 {
		var words []string
		for _, name := range form.names {
			words = append(words, "-d "+name+"="+form.text(name))
		}
		return words
	}
	if body := contents.object("application/json"); body.has("example") {
		return []string{"-H 'Content-Type: application/json'", "-d '" + compact(body.values["example"]) + "'"}
	}
	return nil
}

func without(words []string, unwanted string) []string {
	var kept []string
	for _, word := range words {
		if word != unwanted {
			kept = append(kept, word)
		}
	}
	return kept
}
