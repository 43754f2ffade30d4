package server_test

import "testing"

func TestAnOrganizationIsShownAsItWasCreatedWithoutItsKey(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		for body, want := range map[raw]fields{
			`{"name":"acme"}`: {"name": "acme", "metadata": fields{}},
			`{"name":"Ünïcode <&> 日本 \u2028","metadata":{"b":[1, 2.50,1e2],"a":{"deep":null},"ü":12345678901234567890}}`: {
				"name": "Ünïcode <&> 日本 \u2028", "metadata": fields{
					"b": []any{num("1"), num("2.50"), num("1e2")}, "a": map[string]any{"deep": nil}, "ü": num("12345678901234567890"),
				}},
		} {
			want = want.with(fields{"id": anID, "created_at": aboutNow})
			created := api.post("/v1/organizations", body).is(201).exactly(want.with(fields{"api_key": anAPIKey}))
			path := "/v1/organizations/" + created.text("id")
			if created.header.Get("Location") != path || created.header.Get("Content-Type") != "application/json" {
				t.Errorf("headers %v", created.header)
			}
			api.get(path, asKey(created.text("api_key"))).is(200).exactly(want.with(fields{"quotas": someResources, "usage": someResources}))
		}
	})
}
