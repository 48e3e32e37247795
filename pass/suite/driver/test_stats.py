"""`python3 -m unittest driver.test_stats`, a part of `make test-suite`."""
import unittest

from .stats import excess, median, median_interval


class MedianInterval(unittest.TestCase):
    def test_cuts_what_the_sign_test_allows(self):
        # Of 12 values the third lowest and highest: P(at most 2 of 12) = 79/4096, twice that is below 5 %.
        self.assertEqual(median_interval([float(v) for v in range(12, 0, -1)]), (3.0, 10.0))

    def test_is_the_range_of_few_values(self):
        self.assertEqual(median_interval([2.0, 1.0, 3.0, 5.0, 4.0]), (1.0, 5.0))

    def test_holds_the_median(self):
        values = [0.3, -1.0, 2.5, 0.4, 0.1, 9.0, 0.2]
        low, high = median_interval(values)
        self.assertTrue(low <= median(values) <= high)


class Excess(unittest.TestCase):
    def test_a_burst_in_one_turn_is_chance(self):
        self.assertEqual(excess([[40, 0]] + [[0, 0], [1, 0], [0, 1]] * 20), 0)

    def test_a_gap_in_every_turn_is_not(self):
        self.assertEqual(excess([[3, 0], [2, 0], [3, 1]] * 20), 140)

    def test_fewer_than_the_control_is_nothing(self):
        self.assertEqual(excess([[0, 2], [0, 3], [1, 2]] * 20), 0)


if __name__ == "__main__":
    unittest.main()
