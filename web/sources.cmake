# SPDX-License-Identifier: Apache-2.0
# What the report's page is made from.
set(JOULEMARK_WEB_SOURCES
  build.mjs
  tsconfig.json
  src/dom.ts
  src/figure.ts
  src/fonts.css
  src/format.ts
  src/laws.ts
  src/model.ts
  src/modules.d.ts
  src/report.html
  src/report.ts
  src/sections/closing.ts
  src/sections/configurations.ts
  src/sections/energy.ts
  src/sections/further.ts
  src/sections/measured.ts
  src/sections/runs.ts
  src/sections/scaling.ts
  src/sections/summary.ts
  src/sections/tradeoff.ts
  src/style.css
  src/table.ts
  src/theme.ts
  src/traces.ts
)
