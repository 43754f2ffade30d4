package openapi

import (
	"net/url"
	"slices"
	"strings"
)

// flags are curl's flags for each credential. They use the variables that preparation sets.
var flags = map[string]string{
	"apiKey":         `-H "X-API-Key: $KEY"`,
	"accessToken":    `-H "Authorization: Bearer $TOKEN"`,
	"clientBasic":    `-u "$AGENT:$SECRET"`,
	"bootstrapToken": `-H "Authorization: Bearer $BOOTSTRAP_TOKEN"`,
}

// owned maps a collection in a path to the variable with the id that follows it.
var owned = map[string]string{
	"organizations": "$ORG", "agents": "$AGENT", "sessions": "$SESSION", "transactions": "$TRANSACTION", "leases": "$LEASE", "families": "$FAMILY",
	"requests": "$REQUEST", "api-keys": "$KEY_ID", "webhooks": "$WEBHOOK", "deliveries": "$DELIVERY",
	"trusted-issuers": "$ISSUER", "keys": "$SESSION_KEY_ID",
}

// variables replace example values that readers of the page do not own, in parameters and in bodies.
var variables = map[string]string{
	"agent_id": "$AGENT", "session_id": "$SESSION", "secret": "$SECRET", "refresh_token": "$REFRESH", "token": "$TOKEN",
}

// preparation creates one of each object that the commands need, and sets the variables. newkey prints an idempotency key.
const preparation = `URL=http://127.0.0.1:8080
newkey() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }
field() { sed 's/.*[{,]"'"$1"'":"\([^"]*\)".*/\1/'; }
post() { curl -s "$URL$1" -H 'Content-Type: application/json' -d "$2" -H "$3"; }
RESPONSE=$(post /v1/organizations '{"name":"acme"}' "Authorization: Bearer $BOOTSTRAP_TOKEN")
ORG=$(printf %s "$RESPONSE" | field id) KEY=$(printf %s "$RESPONSE" | field api_key)
RESPONSE=$(post /v1/agents '{"name":"scout","scopes":["read","transactions:rollback"]}' "X-API-Key: $KEY")
AGENT=$(printf %s "$RESPONSE" | field id) SECRET=$(printf %s "$RESPONSE" | field secret)
RESPONSE=$(post /v1/auth/token "{\"agent_id\":\"$AGENT\",\"secret\":\"$SECRET\"}")
TOKEN=$(printf %s "$RESPONSE" | field access_token) REFRESH=$(printf %s "$RESPONSE" | field refresh_token)
SESSION=$(post /v1/sessions "{\"agent_id\":\"$AGENT\",\"max_lease_seconds\":60}" "X-API-Key: $KEY" | field id)
LEASE=$(post /v1/sessions/$SESSION/leases '{"max_actions":5,"expires_in_seconds":60}' "Authorization: Bearer $TOKEN" | field id)
RESPONSE=$(post /v1/transactions "{\"session_id\":\"$SESSION\",\"action_type\":\"refund\",\"value_usd\":2}" "Authorization: Bearer $TOKEN")
TRANSACTION=$(printf %s "$RESPONSE" | field id)
REQUEST=$(post /v1/sessions/$SESSION/requests '{"add_actions":50,"add_value_usd":5,"reason":"12 of 40 are left"}' "Authorization: Bearer $TOKEN" | field id)
SESSION_KEY_ID=$(post /v1/sessions/$SESSION/keys '{"name":"editor"}' "X-API-Key: $KEY" | field id)
curl -s -X PUT "$URL/v1/budget" -H 'Content-Type: application/json' -d '{"max_value_usd":500,"period":"month"}' -H "X-API-Key: $KEY" > /dev/null
KEY_ID=$(post /v1/api-keys '{"name":"dashboard","role":"viewer"}' "X-API-Key: $KEY" | field id)
WEBHOOK=$(post /v1/webhooks '{"url":"https://receiver.example/remit"}' "X-API-Key: $KEY" | field id)
DELIVERY=$(post /v1/webhooks/$WEBHOOK/test '{}' "X-API-Key: $KEY" | field id)
RULES='"rules":[{"agent_id":"'$AGENT'","claims":{"project_path":"acme/app"}}]'
ISSUER=$(post /v1/trusted-issuers '{"issuer":"https://gitlab.com","jwks_uri":"https://gitlab.com/oauth/discovery/keys",'"$RULES}" "X-API-Key: $KEY" | field id)
FAMILY=$(curl -s "$URL/v1/agents/$AGENT/families" -H "X-API-Key: $KEY" | field family_id)`

// curl returns a command that calls the operation when it is pasted after the preparation. It includes the parameters
// that have an example.
func curl(op operation, parameters []object, o object) string {
	path, query, words := ownPath(op.Path), []string{}, []string{}
	for _, p := range parameters {
		name := p.text("name")
		value := variables[name]
		if value == "" && p.has("example") {
			value = url.QueryEscape(strings.Trim(compact(p.values["example"]), `"`))
		}
		switch in := p.text("in"); {
		case in == "path" && value != "":
			path = strings.Replace(path, "{"+name+"}", strings.ReplaceAll(value, "%2F", "/"), 1)
		case in == "query" && p.has("example"):
			query = append(query, name+"="+value)
		case name == "Idempotency-Key":
			words = append(words, `-H "Idempotency-Key: $(newkey)"`)
		case name == "X-Session-Id" && strings.Contains(path, "/authorize/"): // its query has no session_id
			words = append(words, `-H "X-Session-Id: $SESSION"`)
		}
	}
	target := "$URL" + path
	if len(query) > 0 {
		target += "?" + strings.Join(query, "&")
	}
	command := []string{`curl "` + target + `"`}
	if op.Method != "GET" && (op.Method != "POST" || op.Request == nil) {
		command[0] = "curl -X " + op.Method + ` "` + target + `"`
	}
	command = append(command, flags[op.Credentials[0]])
	command = append(command, words...)
	command = append(command, bodyWords(o.object("requestBody").object("content"))...)
	return strings.Join(slices.DeleteFunc(command, isEmpty), " \\\n  ")
}

// ownPath replaces the ids in a path with variables.
func ownPath(path string) string {
	parts := strings.Split(path, "/")
	for i := 1; i < len(parts); i++ {
		if variable := owned[parts[i-1]]; variable != "" && strings.HasPrefix(parts[i], "{") {
			parts[i] = variable
		}
	}
	return strings.Join(parts, "/")
}

func bodyWords(contents object) []string {
	if form := contents.object("application/x-www-form-urlencoded").object("example"); len(form.names) > 0 {
		var words []string
		for _, name := range form.names {
			value := form.text(name)
			if variable := variables[name]; variable != "" {
				value = `"` + variable + `"`
			}
			words = append(words, "-d "+name+"="+value)
		}
		return words
	}
	if body := contents.object("application/json"); body.has("example") {
		// The shell expands nothing between single quotes, so close them before a variable and reopen them after it.
		text := compact(withVariables(body.values["example"]))
		for _, variable := range variables {
			text = strings.ReplaceAll(text, `"`+variable+`"`, `"'"`+variable+`"'"`)
		}
		return []string{"-H 'Content-Type: application/json'", "-d '" + text + "'"}
	}
	return nil
}

// withVariables returns a JSON value whose members are replaced with their variables, if they have one.
func withVariables(value any) any {
	switch value := value.(type) {
	case []any:
		replaced := make([]any, len(value))
		for i, item := range value {
			replaced[i] = withVariables(item)
		}
		return replaced
	case object:
		replaced := object{names: value.names, values: map[string]any{}}
		for name, member := range value.values {
			replaced.values[name] = withVariables(member)
			if variable := variables[name]; variable != "" {
				replaced.values[name] = variable
			}
		}
		return replaced
	}
	return value
}
