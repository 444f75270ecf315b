package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// checkDashboard decodes a dashboard strictly: unknown fields, missing required ones and wrong types are errors, in
// panels, options and queries as well. It then checks that panels have ids of their own and do not overlap.
func checkDashboard(text []byte) ([]string, int) {
	plugins.RegisterDefaultPlugins()
	problems := texts(new(dashboard.Dashboard).UnmarshalJSONStrict(text))
	if len(problems) > 0 {
		return problems, 0
	}
	// The strict decoder leaves out the panels, because it takes the empty list of errors of each for an error.
	var board dashboard.Dashboard
	if err := json.Unmarshal(text, &board); err != nil {
		return []string{err.Error()}, 0
	}
	problems = texts(board.Validate())
	if board.Uid == nil || board.Title == nil {
		problems = append(problems, "it has no uid or no title")
	}
	ids := map[uint32]bool{}
	// The panel that covers each cell of Grafana's grid of 24 columns.
	cells := map[[2]uint32]string{}
	for index, item := range board.Panels {
		panel := item.Panel
		if panel == nil {
			problems = append(problems, fmt.Sprintf("item %d is no panel", index))
			continue
		}
		title := fmt.Sprintf("panel %d", index)
		if panel.Title != nil {
			title = *panel.Title
		}
		if panel.Id == nil || ids[*panel.Id] {
			problems = append(problems, title+": its id is missing or taken")
		} else {
			ids[*panel.Id] = true
		}
		if panel.GridPos == nil || panel.GridPos.X+panel.GridPos.W > 24 {
			problems = append(problems, title+": it has no place in the grid")
			continue
		}
		place := panel.GridPos
		for x := place.X; x < place.X+place.W; x++ {
			for y := place.Y; y < place.Y+place.H; y++ {
				if other, taken := cells[[2]uint32{x, y}]; taken {
					problems = append(problems, title+" overlaps "+other)
					x, y = place.X+place.W, place.Y+place.H
					continue
				}
				cells[[2]uint32{x, y}] = title
			}
		}
	}
	// Queries whose type is unknown are kept as they are, without a check.
	var raw struct {
		Panels []struct {
			Title   string
			Targets []struct{ Datasource struct{ Type string } }
		}
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		problems = append(problems, err.Error())
	}
	for _, panel := range raw.Panels {
		for _, target := range panel.Targets {
			if target.Datasource.Type != "prometheus" {
				problems = append(problems, panel.Title+": a query without the data source type prometheus")
			}
		}
	}
	return problems, len(board.Panels)
}

// texts returns the text of each error. The SDK returns an empty list of errors, and not nil, if there are none.
func texts(err error) []string {
	var list cog.BuildErrors
	if err != nil && !errors.As(err, &list) {
		return []string{err.Error()}
	}
	var problems []string
	for _, problem := range list {
		problems = append(problems, problem.Error())
	}
	return problems
}
