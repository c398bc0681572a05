# Random groups by lme4 with Kenward and Roger's tests (pbkrtest), and aov with Error for balanced
# designs. Rscript strata.R > strata.json
suppressMessages({library(lme4); library(pbkrtest); library(jsonlite)})
options(contrasts = c("contr.sum", "contr.poly"), digits = 15)
set.seed(7)

split_plot <- function(plots, per, levels = 2) {
  d <- expand.grid(run = seq_len(per), plot = seq_len(plots))
  d$A <- (d$plot - 1) %% levels
  d$B <- (d$run - 1) %% 2
  d$C <- ((d$run - 1) %/% 2) %% 2
  plot <- rnorm(plots, sd = 1.5)[d$plot]
  d$y <- 10 + d$A + 2 * d$B + 0.5 * d$A * d$C + plot + rnorm(nrow(d), sd = 0.6)
  d
}

tests <- function(d, terms, random) {
  f <- as.formula(paste("y ~", paste(terms, collapse = "+"), "+", random))
  control <- lmerControl(optCtrl = list(xtol_abs = 1e-12, ftol_abs = 1e-14, maxfun = 1e5))
  full <- lmer(f, d, control = control)
  X <- getME(full, "X")
  assign <- attr(X, "assign")
  labels <- attr(terms(full), "term.labels")
  rows <- lapply(seq_along(labels), function(i) {
    L <- diag(ncol(X))[assign == i, , drop = FALSE]
    t <- KRmodcomp(full, L)$test["Ftest", ]
    list(term = labels[i], f = t$stat, df = t$ndf, df_error = t$ddf, p = t$p.value)
  })
  v <- as.data.frame(VarCorr(full))
  list(variances = setNames(as.list(v$vcov), v$grp), coef = unname(fixef(full)), tests = rows)
}

case <- function(d, terms, random, groups, error = NULL) {
  for (name in c("A", "B", "C")) d[[name]] <- factor(d[[name]])
  for (name in groups) d[[name]] <- factor(d[[name]])
  found <- tests(d, terms, random)
  result <- list(
    groups = lapply(setNames(groups, groups), function(g) as.integer(d[[g]]) - 1L),
    A = as.integer(d$A) - 1L, B = as.integer(d$B) - 1L, C = as.integer(d$C) - 1L,
    y = d$y, terms = terms, lmer = found)
  if ("rep" %in% names(d)) result$rep <- as.integer(d$rep) - 1L
  if (!is.null(error)) {
    fit <- summary(aov(as.formula(paste("y ~", paste(terms, collapse = "+"), "+", error)), d))
    lines <- list()
    for (stratum in names(fit)) {
      table <- fit[[stratum]][[1]]
      for (i in seq_len(nrow(table))) lines[[length(lines) + 1]] <- list(
        stratum = stratum, source = trimws(rownames(table)[i]), df = table[i, "Df"],
        ss = table[i, "Sum Sq"],
        f = if ("F value" %in% names(table)) table[i, "F value"] else NA)
    }
    result$aov <- lines
  }
  result
}

full <- c("A", "B", "C", "A:B", "A:C")
cases <- list()
cases$balanced <- case(split_plot(6, 4), full, "(1 | plot)", "plot", "Error(plot)")
cases$twelve <- case(split_plot(12, 4), full, "(1 | plot)", "plot", "Error(plot)")
cases$three <- case(split_plot(9, 4, 3), full, "(1 | plot)", "plot", "Error(plot)")
lost <- split_plot(8, 4)
cases$lost <- case(lost[-c(2, 9, 10, 27), ], full, "(1 | plot)", "plot")
uneven <- split_plot(7, 6)
cases$uneven <- case(uneven[-c(1, 2, 3, 20, 33), ], full, "(1 | plot)", "plot")
few <- split_plot(4, 4)
cases$few <- case(few, c("A", "B"), "(1 | plot)", "plot", "Error(plot)")
crossed <- expand.grid(seed = 1:4, data = 1:5, A = 0:1, B = 0:1)
crossed$C <- 0
crossed$y <- with(crossed, A + rnorm(4)[seed] + rnorm(5, sd = 2)[data]) + rnorm(80, sd = 0.5)
crossed$C <- rep(0:1, 40)
cases$crossed <- case(crossed, c("A", "B", "A:B"), "(1 | seed) + (1 | data)", c("seed", "data"))
cases$incomplete <- case(crossed[-sample(80, 23), ], c("A", "B", "A:B"),
  "(1 | seed) + (1 | data)", c("seed", "data"))
between <- split_plot(8, 3)
cases$between <- case(between, c("A", "B"), "(1 | plot)", "plot")
nothing <- split_plot(6, 4)
nothing$y <- with(nothing, A + B + rnorm(24))
nothing$y <- nothing$y - ave(nothing$y, nothing$plot) + nothing$A
cases$nothing <- case(nothing, c("A", "B", "C"), "(1 | plot)", "plot")
blocks <- expand.grid(C = 0:1, B = 0:1, A = 0:1, rep = 1:4)
blocks$plot <- interaction(blocks$rep, blocks$A)
blocks$y <- with(blocks, 3 * rep + A + 2 * B + rnorm(8, sd = 1.5)[plot]) + rnorm(32, sd = 0.5)
blocks$rep <- factor(blocks$rep)
in_blocks <- c("rep", "A", "B", "C", "A:B", "A:C", "B:C", "A:B:C")
cases$blocks <- case(blocks, in_blocks, "(1 | plot)", "plot", "Error(plot)")
cases$blocks_lost <- case(blocks[-c(3, 14, 15, 30), ], in_blocks, "(1 | plot)", "plot")
sets <- expand.grid(run = 1:2, B = 0:1, A = 0:1, D = 1:6)
sets$C <- 0
sets$DA <- interaction(sets$D, sets$A)
sets$DB <- interaction(sets$D, sets$B)
sets$DAB <- interaction(sets$D, sets$A, sets$B)
sets$y <- with(sets, A + B + rnorm(6, sd = 3)[D] + rnorm(12, sd = 1.5)[DA] +
  rnorm(12, sd = 1.5)[DB] + rnorm(24)[DAB]) + rnorm(48, sd = 0.3)
over <- "(1 | D) + (1 | DA) + (1 | DB) + (1 | DAB)"
cases$datasets <- case(sets, c("A", "B", "A:B"), over, c("D", "DA", "DB", "DAB"),
  "Error(D / (A * B))")
cases$datasets_lost <- case(sets[-c(2, 11, 12, 25, 40), ], c("A", "B", "A:B"), over,
  c("D", "DA", "DB", "DAB"))
cat(toJSON(cases, auto_unbox = TRUE, digits = NA, na = "null"))
