package server

import (
	"encoding/json"
	"slices"
	"testing"

	"remit/openapi"
)

func TestWebhooksKnowTheTypesOfTheDescription(t *testing.T) {
	t.Parallel()
	var description struct {
		Components struct {
			Schemas struct {
				Event struct {
					Properties struct {
						Type struct {
							Enum []string `json:"enum"`
						} `json:"type"`
					} `json:"properties"`
				} `json:"Event"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(openapi.JSON().Body, &description); err != nil {
		t.Fatal(err)
	}
	if described := description.Components.Schemas.Event.Properties.Type.Enum; !slices.Equal(described, eventTypes) {
		t.Errorf("described are %q, known are %q", described, eventTypes)
	}
}
