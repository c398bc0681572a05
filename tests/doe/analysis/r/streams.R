# Answers of R's lme4 for streams of seeds: variance components by REML, which in balanced designs
# with no component at zero are those of the analysis of variance.
# Rscript streams.R > streams.json   (Debian: r-cran-jsonlite r-cran-lme4)
suppressMessages({library(jsonlite); library(lme4)})
tight <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-12),
                     check.conv.singular = "ignore")
variances <- function(model) {
  v <- as.data.frame(VarCorr(model)); setNames(as.list(v$vcov), v$grp)
}
answers <- list()

# Davies and Goldsmith (1972): 24 plates crossed with 6 samples of penicillin.
d <- Penicillin
m <- lmer(diameter ~ 1 + (1 | plate) + (1 | sample), d, control = tight)
answers$penicillin <- list(y = d$diameter, plate = as.integer(d$plate), sample = as.integer(d$sample),
  variances = variances(m))

# The same with a quarter of the pairs of plate and sample lost: no analysis of variance is like it.
d <- Penicillin[(as.integer(Penicillin$plate) * 5 + as.integer(Penicillin$sample)^2) %% 4 != 0, ]
m <- lmer(diameter ~ 1 + (1 | plate) + (1 | sample), d, control = tight)
answers$incomplete <- list(y = d$diameter, plate = as.integer(d$plate), sample = as.integer(d$sample),
  variances = variances(m))

# Davies (1947): five preparations nested in each of six batches of dyestuff.
d <- Dyestuff
m <- lmer(Yield ~ 1 + (1 | Batch), d, control = tight)
answers$dyestuff <- list(y = d$Yield, batch = as.integer(d$Batch), variances = variances(m))

# 2^3 configurations, 3 seeds of the weights crossed with 4 of the data.
set.seed(19)
d <- expand.grid(cell = factor(0:7), init = factor(1:3), data = factor(1:4))
effect <- function(f, sd) rnorm(nlevels(f), 0, sd)[f]
d$y <- round(20 + as.integer(d$cell) + effect(d$init, 0.8) + effect(d$data, 1) +
  effect(interaction(d$init, d$data), 0.5) + effect(interaction(d$cell, d$init), 0.7) +
  effect(interaction(d$cell, d$data), 0.4) + rnorm(nrow(d), 0, 0.6), 4)
m <- lmer(y ~ cell + (1 | init) + (1 | data) + (1 | init:data) + (1 | cell:init) + (1 | cell:data),
          d, control = tight)
a <- ifelse(0:7 %% 2 == 1, 1, -1) / 4
x <- model.matrix(~ cell, data.frame(cell = factor(0:7)))
answer <- function(d, m) list(y = d$y, cell = as.integer(d$cell) - 1L, init = as.integer(d$init),
  data = as.integer(d$data), variances = variances(m),
  effect = as.numeric(a %*% x %*% fixef(m)),
  se = sqrt(as.numeric(a %*% x %*% as.matrix(vcov(m)) %*% t(a %*% x))))
answers$study <- answer(d, m)

# 9 of the 12 pairs of seeds alone.
d <- subset(d, !paste(init, data) %in% c("1 2", "2 4", "3 1"))
m <- update(m, data = d)
answers$part <- answer(d, m)

cat(toJSON(answers, digits = I(15), auto_unbox = TRUE), "\n")
