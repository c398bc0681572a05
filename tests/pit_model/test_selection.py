from math import inf, nan

from pit_model.selection import choose_epochs, epochs_to_keep


def test_each_metric_chooses_its_own_smallest_value():
    history = [{"B": 3.0, "V": 1.0}, {"B": 1.0, "V": 2.0}, {"B": 2.0, "V": 0.5}]
    assert choose_epochs(history) == {"B": 1, "V": 2}
    assert epochs_to_keep(choose_epochs(history)) == (1, 2)


def test_ties_go_to_the_earliest_epoch():
    assert choose_epochs([{"B": 2.0}, {"B": 1.0}, {"B": 1.0}]) == {"B": 1}


def test_a_value_that_is_not_finite_is_never_chosen():
    assert choose_epochs([{"B": nan}, {"B": -inf}, {"B": 5.0}, {"B": inf}]) == {"B": 2}
    assert choose_epochs([{"B": nan, "V": 1.0}]) == {"V": 0}
    assert choose_epochs([]) == {}
