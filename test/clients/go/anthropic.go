package main

import (
	"context"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/toolrunner"
)

func message(ctx context.Context, u use, tool *lookup) (string, error) {
	client := anthropic.NewClient(option.WithBaseURL(u.BaseURL), option.WithAPIKey(u.Key))
	if u.Tool {
		return runTools(ctx, client, u, tool)
	}
	params := anthropic.MessageNewParams{
		Model: anthropic.Model(u.Model), MaxTokens: most, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))},
	}
	if !u.Streamed {
		answer, err := client.Messages.New(ctx, params)
		if err != nil {
			return "", err
		}
		return answer.Content[0].Text, nil
	}
	stream := client.Messages.NewStreaming(ctx, params)
	defer stream.Close()
	var answer anthropic.Message
	for stream.Next() {
		if err := answer.Accumulate(stream.Current()); err != nil {
			return "", err
		}
	}
	if err := stream.Err(); err != nil {
		return "", err
	}
	return answer.Content[0].Text, nil
}

// runTools has the package run the loop of a model and its tool.
func runTools(ctx context.Context, client anthropic.Client, u use, tool *lookup) (string, error) {
	schema, err := json.Marshal(parameters)
	if err != nil {
		return "", err
	}
	run := func(_ context.Context, of input) (anthropic.BetaToolResultBlockParamContentUnion, error) {
		return anthropic.BetaToolResultBlockParamContentUnion{OfText: &anthropic.BetaTextBlockParam{Text: tool.run(of)}}, nil
	}
	one, err := toolrunner.NewBetaToolFromBytes("lookup", description, schema, run)
	if err != nil {
		return "", err
	}
	tools := []anthropic.BetaTool{one}
	params := anthropic.BetaToolRunnerParams{BetaMessageNewParams: anthropic.BetaMessageNewParams{
		Model: anthropic.Model(u.Model), MaxTokens: most,
		Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(question))},
	}}
	if !u.Streamed {
		answer, err := client.Beta.Messages.NewToolRunner(tools, params).RunToCompletion(ctx)
		if err != nil {
			return "", err
		}
		return answer.Content[0].Text, nil
	}
	var text string
	for events := range client.Beta.Messages.NewToolRunnerStreaming(tools, params).AllStreaming(ctx) {
		for event, err := range events {
			if err != nil {
				return "", err
			}
			text += event.Delta.Text
		}
	}
	return text, nil
}
