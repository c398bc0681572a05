# Answers of R for factors with levels: aov, car::Anova, emmeans, TukeyHSD, car::vif, lme4.
# Rscript levels.R > levels.json   (Debian: r-cran-car r-cran-emmeans r-cran-jsonlite r-cran-lme4)
suppressMessages({library(car); library(emmeans); library(jsonlite); library(lme4)})
options(contrasts = c("contr.sum", "contr.poly"))
emm_options(msg.interaction = FALSE, msg.nesting = FALSE, opt.digits = FALSE)

# Data -----------------------------------------------------------------------------------------
grid <- function(..., times = 1) {
  cells <- expand.grid(..., KEEP.OUT.ATTRS = FALSE)
  do.call(rbind, replicate(times, cells, simplify = FALSE))
}
noisy <- function(mean, sd) round(mean + rnorm(length(mean), 0, sd), 3)

# Tables ---------------------------------------------------------------------------------------
rows_of <- function(table) {
  names <- trimws(rownames(table))
  keep <- !(names %in% "(Intercept)")
  ss <- table[[if ("Sum Sq" %in% colnames(table)) "Sum Sq" else "SS"]]
  lapply(which(keep), function(i)
    list(source = names[i], df = table[["Df"]][i], ss = ss[i],
         f = table[["F value"]][i], p = table[["Pr(>F)"]][i]))
}
means_of <- function(model, specs) {
  s <- as.data.frame(summary(emmeans(model, specs), infer = c(TRUE, FALSE)))
  lapply(seq_len(nrow(s)), function(i)
    list(level = paste(sapply(specs, function(k) as.character(s[i, k])), collapse = " · "),
         mean = s$emmean[i], se = s$SE[i], low = s$lower.CL[i], high = s$upper.CL[i]))
}
pairs_of <- function(model, key) {
  s <- as.data.frame(summary(pairs(emmeans(model, key), reverse = TRUE), infer = c(TRUE, TRUE)))
  k <- nlevels(factor(model$model[[key]]))
  # qtukey stops at four digits: its root is found again with ptukey, which has more.
  q <- if (k == 2) sqrt(2) * qt(0.975, s$df[1]) else
    uniroot(function(x) ptukey(x, k, s$df[1], lower.tail = FALSE) - 0.05, c(0.1, 200), tol = 1e-14)$root
  lapply(seq_len(nrow(s)), function(i)
    list(pair = as.character(s$contrast[i]), d = s$estimate[i], se = s$SE[i], t = s$t.ratio[i],
         low = s$estimate[i] - q / sqrt(2) * s$SE[i], high = s$estimate[i] + q / sqrt(2) * s$SE[i],
         p = s$p.value[i]))
}
parts_of <- function(model, key, z) {
  p <- poly(z, length(z) - 1)
  weights <- lapply(seq_len(ncol(p)), function(j) as.numeric(p[, j]))
  names(weights) <- paste0("degree", seq_along(weights))
  s <- as.data.frame(summary(contrast(emmeans(model, key), weights), infer = c(TRUE, TRUE)))
  lapply(seq_len(nrow(s)), function(i) list(t = s$t.ratio[i], p = s$p.value[i]))
}
vif_of <- function(model) {
  v <- vif(model)
  if (is.matrix(v)) { out <- as.list(v[, 1]); names(out) <- rownames(v); out } else as.list(v)
}
case <- function(d, keys, model, factors = NULL, ...) {
  list(keys = keys, levels = lapply(d[keys], function(f) levels(factor(f))),
       index = as.matrix(sapply(d[keys], function(f) as.integer(factor(f)) - 1L)),
       block = if ("block" %in% names(d)) as.integer(d$block) - 1L else NULL,
       y = d$y, df = df.residual(model), sigma = sigma(model), ...)
}
safe <- function(x) tryCatch(x, error = function(e) NULL)
answers <- list()

# 2 x 3, three replicates, balanced ----------------------------------------------------------------
set.seed(16)
d <- grid(A = factor(c("off", "on")), B = factor(c("adam", "lion", "sgd")), times = 3)
d$y <- noisy(10 + 2 * (d$A == "on") + c(0, 1, 3)[as.integer(d$B)] + 1.5 * (d$A == "on") * (d$B == "sgd"), 0.8)
m <- lm(y ~ A * B, d)
tukey <- TukeyHSD(aov(y ~ A * B, d), "B")$B
answers$two_by_three <- case(d, c("A", "B"), m,
  aov = rows_of(summary(aov(y ~ A * B, d))[[1]]), type2 = rows_of(Anova(m)), type3 = rows_of(Anova(m, type = 3)),
  means = list(A = means_of(m, "A"), B = means_of(m, "B"), AB = means_of(m, c("A", "B"))),
  pairs = list(A = pairs_of(m, "A"), B = pairs_of(m, "B")),
  tukey = lapply(seq_len(nrow(tukey)), function(i) list(pair = rownames(tukey)[i], d = tukey[i, 1], p = tukey[i, 4])),
  hc3 = rows_of(Anova(m, type = 3, white.adjust = "hc3")), vif = vif_of(m),
  r2 = summary(m)$r.squared, r2_adjusted = summary(m)$adj.r.squared,
  r2_predicted = 1 - sum((resid(m) / (1 - hatvalues(m)))^2) / sum((d$y - mean(d$y))^2))

# The same in blocks, and additive: lack of fit -----------------------------------------------------
d$block <- factor(rep(1:3, each = 6))
d$y <- d$y + c(0, 1.2, -0.7)[d$block]
m <- lm(y ~ block + A * B, d)
answers$blocks <- case(d, c("A", "B"), m,
  aov = rows_of(summary(aov(y ~ block + A * B, d))[[1]]), type2 = rows_of(Anova(m)),
  means = list(A = means_of(m, "A"), B = means_of(m, "B")), pairs = list(B = pairs_of(m, "B")))
m <- lm(y ~ block + A + B, d)
full <- lm(y ~ block + A * B, d)
lack <- anova(m, full)
answers$additive <- case(d, c("A", "B"), m, terms = c("A", "B"),
  type2 = rows_of(Anova(m)), means = list(B = means_of(m, "B")), pairs = list(B = pairs_of(m, "B")),
  lack = list(df = lack$Df[2], ss = lack$`Sum of Sq`[2], f = lack$F[2], p = lack$`Pr(>F)`[2]),
  pure = list(df = df.residual(full), ss = deviance(full)))
r <- lmer(y ~ A * B + (1 | block), d, control = lmerControl(optCtrl = list(xtol_abs = 1e-14, ftol_abs = 1e-16)))
answers$blocks$random <- list(variances = as.data.frame(VarCorr(r))$vcov, f = as.list(setNames(anova(r)$`F value`, rownames(anova(r)))))

# 3 x 3 x 2 with lost runs: two cells empty ---------------------------------------------------------
set.seed(33)
d <- grid(A = factor(c("a1", "a2", "a3")), B = factor(c("b1", "b2", "b3")), C = factor(c("c1", "c2")), times = 2)
d$y <- noisy(5 + c(0, 1, 2.5)[d$A] + c(0, -1, 0.5)[d$B] + 0.8 * (d$C == "c2") + 0.9 * (d$A == "a3") * (d$B == "b2"), 0.5)
d <- d[!(d$A == "a1" & d$B == "b1" & d$C == "c1") & !(d$A == "a3" & d$B == "b2" & d$C == "c2"), ]
d <- d[-c(3, 11, 20), ]
m <- lm(y ~ (A + B + C)^2, d)
answers$missing <- case(d, c("A", "B", "C"), m, terms = c("A", "B", "C", "AB", "AC", "BC"),
  aov = rows_of(summary(aov(y ~ (A + B + C)^2, d))[[1]]), type2 = rows_of(Anova(m)), type3 = rows_of(Anova(m, type = 3)),
  means = list(A = means_of(m, "A"), B = means_of(m, "B"), C = means_of(m, "C"), AB = means_of(m, c("A", "B"))),
  pairs = list(A = pairs_of(m, "A"), B = pairs_of(m, "B"), C = pairs_of(m, "C")),
  hc3 = safe(rows_of(Anova(m, type = 3, white.adjust = "hc3"))), vif = vif_of(m))
m <- lm(y ~ A * B * C, d)
answers$empty <- case(d, c("A", "B", "C"), m,
  aov = rows_of(summary(aov(y ~ A * B * C, d))[[1]]), type2 = rows_of(Anova(m, singular.ok = TRUE)))
cells <- emmeans(m, ~ A:B:C)
g <- as.data.frame(cells)[, c("A", "B", "C")]
weights <- function(on, off) ((on) / sum(on)) - (if (any(off)) off / sum(off) else 0)
run <- with(g, !(A == "a1" & B == "b1" & C == "c1") & !(A == "a3" & B == "b2" & C == "c2"))
both <- function(a, b) { # combinations of B and C that two levels of A both have
  key <- paste(g$B, g$C); shared <- intersect(key[run & g$A == a], key[run & g$A == b])
  weights(g$A == a & key %in% shared, g$A == b & key %in% shared) }
s <- as.data.frame(contrast(cells, list(
  a1 = weights(run & g$A == "a1", FALSE), a2 = weights(run & g$A == "a2", FALSE), a3 = weights(run & g$A == "a3", FALSE),
  "a2 - a1" = both("a2", "a1"), "a3 - a1" = both("a3", "a1"), "a3 - a2" = both("a3", "a2"))))
answers$empty$shared <- lapply(seq_len(nrow(s)), function(i) list(what = as.character(s$contrast[i]), value = s$estimate[i], se = s$SE[i]))

# 2^3 of numbers with centre runs, and in two blocks -------------------------------------------------
set.seed(8)
d <- grid(A = c(-1, 1), B = c(-1, 1), C = c(-1, 1))
d <- rbind(d, data.frame(A = 0, B = 0, C = 0)[rep(1, 4), ])
d$centre <- as.numeric(d$A == 0)
d$y <- noisy(60 + 3 * d$A - 2 * d$B + d$C + 1.5 * d$A * d$B + 4 * d$centre, 0.7)
centre_case <- function(d, model, ...) {
  x <- unname(as.matrix(d[c("A", "B", "C")]))
  out <- list(keys = c("A", "B", "C"), index = ifelse(x == 0, -1, (x + 1) / 2),
              centre = d$centre == 1, y = d$y, df = df.residual(model), sigma = sigma(model), ...)
  if ("block" %in% names(d)) out$block <- as.integer(d$block) - 1L
  k <- summary(model)$coefficients["centre", ]
  out$curvature <- list(d = k[[1]], se = k[[2]], t = k[[3]], p = k[[4]])
  out
}
m <- lm(y ~ A * B * C + centre, d)
answers$centre <- centre_case(d, m, aov = rows_of(summary(aov(y ~ A * B * C + centre, d))[[1]]), type2 = rows_of(Anova(m)))
d <- rbind(d, d); d$block <- factor(rep(1:2, each = 12))
d$y <- round(d$y + c(0, 2)[d$block] + rnorm(24, 0, 0.7), 3)
d <- d[-c(2, 15, 17, 24), ]
m <- lm(y ~ block + A * B * C + centre, d)
answers$centre_blocks <- centre_case(d, m, type2 = rows_of(Anova(m)), type3 = rows_of(Anova(m, type = 3)))

# Excluded combinations: an option of one optimizer only --------------------------------------------
set.seed(77)
d <- grid(optimizer = factor(c("adam", "lion", "sgd")), amsgrad = factor(c("off", "on")), lr = factor(c("0.001", "0.01", "0.1")), times = 2)
d <- d[!(d$optimizer == "sgd" & d$amsgrad == "on"), ]
d$y <- noisy(0.8 + 0.05 * (d$optimizer == "adam") + 0.02 * (d$amsgrad == "on") + c(-0.1, 0.05, 0)[d$lr] * ifelse(d$optimizer == "sgd", -1, 1), 0.03)
m <- lm(y ~ optimizer + amsgrad + lr + optimizer:lr, d)
answers$excluded <- case(d, c("optimizer", "amsgrad", "lr"), m, terms = c("optimizer", "amsgrad", "lr", "optimizer:lr"),
  type2 = rows_of(Anova(m)), type3 = rows_of(Anova(m, type = 3)),
  means = list(optimizer = means_of(m, "optimizer"), amsgrad = means_of(m, "amsgrad"), lr = means_of(m, "lr")),
  pairs = list(optimizer = pairs_of(m, "optimizer"), amsgrad = pairs_of(m, "amsgrad")),
  vif = vif_of(m), parts = list(lr = parts_of(m, "lr", log(c(0.001, 0.01, 0.1)))))
m <- lm(y ~ optimizer * amsgrad * lr, d)
answers$excluded_full <- case(d, c("optimizer", "amsgrad", "lr"), m, type2 = rows_of(Anova(m, singular.ok = TRUE)),
  aov = rows_of(summary(aov(y ~ optimizer * amsgrad * lr, d))[[1]]))

# Unequal replicates in blocks; an uneven log scale with four levels --------------------------------
set.seed(5)
d <- grid(lr = factor(c("0.001", "0.003", "0.03", "0.1")), augment = factor(c("off", "on")), times = 6)
d$block <- factor(rep(1:6, each = 8))
z <- log(c(0.001, 0.003, 0.03, 0.1))
d$y <- noisy(3 - 0.2 * z[d$lr] - 0.08 * (z[d$lr] + 4.5)^2 + 0.3 * (d$augment == "on") + c(0, 0.5, -0.4, 0.2, 0.7, -0.3)[d$block], 0.25)
d <- d[-c(1, 2, 9, 13, 14, 22, 30, 31, 40, 47), ]
m <- lm(y ~ block + lr * augment, d)
answers$unequal <- case(d, c("lr", "augment"), m, aov = rows_of(summary(aov(y ~ block + lr * augment, d))[[1]]),
  type2 = rows_of(Anova(m)), type3 = rows_of(Anova(m, type = 3)),
  means = list(lr = means_of(m, "lr"), augment = means_of(m, "augment"), "lr:augment" = means_of(m, c("lr", "augment"))),
  pairs = list(lr = pairs_of(m, "lr"), augment = pairs_of(m, "augment")),
  hc3 = rows_of(Anova(m, type = 3, white.adjust = "hc3")), vif = vif_of(m), parts = list(lr = parts_of(m, "lr", z)))
r <- lmer(y ~ lr * augment + (1 | block), d, control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-13)))
v <- as.matrix(vcov(r)); b <- fixef(r); term <- attr(model.matrix(r), "assign")
answers$unequal$random <- list(variances = as.data.frame(VarCorr(r))$vcov, f = setNames(lapply(1:3, function(i) {
  j <- term == i; as.numeric(b[j] %*% solve(v[j, j], b[j])) / sum(j) }), c("lr", "augment", "lr:augment")))

cat(toJSON(answers, digits = I(15), auto_unbox = TRUE, na = "null", null = "null"), "\n")
