package main

import (
	"context"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func newOpenAI(u use) openai.Client {
	return openai.NewClient(option.WithBaseURL(u.BaseURL), option.WithAPIKey(u.Key))
}

func chat(ctx context.Context, u use, tool *lookup) (string, error) {
	client := newOpenAI(u)
	params := openai.ChatCompletionNewParams{Model: u.Model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)}}
	if u.Tool {
		params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: "lookup", Description: openai.String(description), Parameters: parameters,
		})}
	}
	for {
		answer, err := complete(ctx, client, params, u.Streamed)
		if err != nil {
			return "", err
		}
		given := answer.Choices[0].Message
		if len(given.ToolCalls) == 0 {
			return given.Content, nil
		}
		params.Messages = append(params.Messages, given.ToParam())
		for _, one := range given.ToolCalls {
			result, err := tool.call(one.Function.Arguments)
			if err != nil {
				return "", err
			}
			params.Messages = append(params.Messages, openai.ToolMessage(result, one.ID))
		}
	}
}

func complete(ctx context.Context, client openai.Client, params openai.ChatCompletionNewParams, streamed bool) (*openai.ChatCompletion, error) {
	if !streamed {
		return client.Chat.Completions.New(ctx, params)
	}
	stream := client.Chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	return &all.ChatCompletion, stream.Err()
}

// respond goes on from the answer that the provider keeps, as the package's own description does.
func respond(ctx context.Context, u use, tool *lookup) (string, error) {
	client := newOpenAI(u)
	params := responses.ResponseNewParams{Model: u.Model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(question)}}
	if u.Tool {
		params.Tools = []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
			Name: "lookup", Description: openai.String(description), Parameters: parameters, Strict: openai.Bool(true),
		}}}
	}
	for {
		answer, err := response(ctx, client, params, u.Streamed)
		if err != nil {
			return "", err
		}
		var results responses.ResponseInputParam
		for _, item := range answer.Output {
			if item.Type != "function_call" {
				continue
			}
			one := item.AsFunctionCall()
			result, err := tool.call(one.Arguments)
			if err != nil {
				return "", err
			}
			output := responses.ResponseInputItemParamOfFunctionCallOutput(result)
			output.OfFunctionCallOutput.CallID = openai.String(one.CallID)
			results = append(results, output)
		}
		if len(results) == 0 {
			return answer.OutputText(), nil
		}
		params.PreviousResponseID, params.Input = openai.String(answer.ID), responses.ResponseNewParamsInputUnion{OfInputItemList: results}
	}
}

func response(ctx context.Context, client openai.Client, params responses.ResponseNewParams, streamed bool) (*responses.Response, error) {
	if !streamed {
		return client.Responses.New(ctx, params)
	}
	stream := client.Responses.NewStreaming(ctx, params)
	defer stream.Close()
	last := new(responses.Response)
	for stream.Next() {
		if event := stream.Current(); event.Type == "response.completed" {
			*last = event.Response
		}
	}
	return last, stream.Err()
}
