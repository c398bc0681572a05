# Answers of R's glm for shares of 500 items: quasi-binomial, half an item added to either side.
# Rscript shares.R > shares.json   (Debian: r-cran-jsonlite)
suppressMessages(library(jsonlite))
set.seed(7)
items <- 500
d <- expand.grid(replicate = 1:3, a = 0:1, o = 0:2)
p <- plogis(3 + 2.2 * d$a + 0.4 * d$o)
d$k <- pmin(items, rbinom(nrow(d), items, plogis(qlogis(p) + rnorm(nrow(d), 0, 0.2))))
fit <- function(columns) glm(cbind(d$k + 0.5, items - d$k + 0.5) ~ columns - 1, quasibinomial,
                             control = list(epsilon = 1e-14))
x <- model.matrix(~ a * o, list(a = factor(d$a), o = factor(d$o)),
                  contrasts.arg = list(a = "contr.sum", o = "contr.sum"))
own <- attr(x, "assign")
full <- fit(x)
phi <- summary(full)$dispersion
terms <- lapply(1:3, function(i) {
  df <- sum(own == i)
  f <- (deviance(fit(x[, own != i])) - deviance(full)) / df / phi
  list(f = f, p = pf(f, df, df.residual(full), lower.tail = FALSE))
})
names(terms) <- c("a", "o", "ao")
line <- summary(full)$coefficients[2, ]  # contr.sum: the first level is +1
odds <- exp(-2 * line[1] + c(0, -1, 1) * qt(0.975, df.residual(full)) * 2 * line[2])
answers <- list(a = d$a, o = d$o, k = d$k, items = items, dispersion = phi, terms = terms,
                odds = unname(odds))
cat(toJSON(answers, digits = 12, auto_unbox = TRUE))
